-- Times the workloads here, with the program's own benchmark().  Prints lines "workload seconds".
--
-- What holds for peers and limits too: one run unmeasured, then the best of those that fill the
-- budget.  BENCH_ONLY, part of a name, picks workloads; BENCH_SIZES=0 leaves out the growing sizes.
local workloads = dofile("tests/bench/workloads.lua")
local ONLY = os.getenv("BENCH_ONLY") or ""
local BUDGET, BUDGET_SIZES = 0.1, 0.05 -- seconds

function print() end -- benchmark()'s lines are not wanted here

local function best(row, budget)
  local f, options = row.make(), {sync = not row.undrained}
  f()
  sync()
  local least, spent = math.huge, 0
  repeat
    local seconds = benchmark(f, options).seconds
    least = math.min(least, seconds)
    spent = spent + seconds + benchmark(sync).seconds
  until spent >= budget
  return least / row.per
end

local function measure(rows, budget)
  for _, row in ipairs(rows) do
    if row.name:find(ONLY, 1, true) then
      io.write(row.name, " ", best(row, budget), "\n")
      collectgarbage()
    end
  end
end

measure(workloads.rows, BUDGET)
if os.getenv("BENCH_SIZES") ~= "0" then measure(workloads.growth.rows, BUDGET_SIZES) end
