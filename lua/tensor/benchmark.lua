-- benchmark([name,] f [, options]): what f takes, and who takes it.
--
-- Work queued before is drained first, so that it is not measured.  What f leaves in the queue is
-- said in the line, because then the time is that of enqueueing.
local _, internal = ...
local tensor, measure = internal.tensor, internal.measure

local OPTIONS = {sync = "boolean", warmup = "number", times = "number"}

local function check(name, f, options)
  if type(name) ~= "string" then
    error("benchmark: the name must be a string, not " .. type(name), 4)
  end
  local meta = getmetatable(f)
  if type(f) ~= "function" and not (type(meta) == "table" and meta.__call) then
    error("benchmark: wants a function to run, not " .. type(f), 4)
  end
  if type(options) ~= "table" then
    error("benchmark: the options must be a table, not " .. type(options), 4)
  end
  for key, value in pairs(options) do
    local wanted = OPTIONS[key]
    if not wanted then
      error("benchmark: unknown option '" .. tostring(key) .. "': sync, warmup or times", 4)
    elseif type(value) ~= wanted then
      error(("benchmark: option %s must be a %s, not %s"):format(key, wanted, type(value)), 4)
    elseif wanted == "number" and (value < (key == "times" and 1 or 0) or value % 1 ~= 0) then
      error(("benchmark: option %s cannot be %s"):format(key, value), 4)
    end
  end
end

local function run_once(f, sync)
  tensor.sync()
  local start, blocked, busy = measure()
  f()
  if sync then tensor.sync() end
  local stop, blocked_after, busy_after, queued = measure()
  local seconds = stop - start
  blocked = blocked_after - blocked
  return {
    seconds = seconds,
    enqueue = seconds - blocked, -- the frontend's own work
    blocked = blocked,           -- the frontend waited, and helped
    busy = busy_after - busy,    -- all lanes at work, added up
    queued = queued,             -- operations that f left in the queue
  }
end

-- The result whose time is the median (the lower one of two), with the spread of all times.
local function summarise(runs)
  table.sort(runs, function(a, b) return a.seconds < b.seconds end)
  local result = runs[(#runs + 1) // 2]
  result.times, result.min, result.max = #runs, runs[1].seconds, runs[#runs].seconds
  return result
end

return function(...)
  local name, f, options, excess = ...
  if type(name) ~= "string" then name, f, options, excess = "Done", ... end
  if excess ~= nil then error("benchmark: an argument too many", 3) end
  if options == nil then options = {} end
  check(name, f, options)
  for _ = 1, options.warmup or 0 do f() end
  local runs = {}
  for i = 1, options.times or 1 do runs[i] = run_once(f, options.sync) end
  local result = summarise(runs)
  local line = ("%s: %.4f sec"):format(name, result.seconds)
  if #runs > 1 then
    line = line .. ("  (median of %d, %.4f to %.4f)"):format(#runs, result.min, result.max)
  end
  if result.queued > 0 then
    line = line .. ("  (%d operation%s still queued)"):format(result.queued,
      result.queued == 1 and "" or "s")
  end
  _G.print(line) -- the script may have put its own there
  return result
end
