-- A plain loop of temporaries, for its peak memory: temporaries.lua ROWS COLUMNS COUNT.
local rows, columns, count = table.unpack(arg)
local x = tensor.ones(tonumber(rows), tonumber(columns))
for _ = 1, tonumber(count) do
  local y = x + 1
end
sync()
