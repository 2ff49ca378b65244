-- How much memory a plain loop of temporaries takes: temporaries.lua ROWS COLUMNS COUNT prints the
-- peak resident size in MiB.
local rows, columns, count = table.unpack(arg)
local x = tensor.ones(tonumber(rows), tonumber(columns))
for _ = 1, tonumber(count) do
  local y = x + 1
end
sync()
for line in io.lines("/proc/self/status") do
  local kilobytes = line:match("^VmHWM:%s*(%d+)")
  if kilobytes then print(tonumber(kilobytes) / 1024) end
end
