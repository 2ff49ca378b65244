-- benchmark: its forms, the line that it prints, its result, its options, and errors in f.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

-- Runs benchmark and gives its results and the lines that it printed.
local function run(...)
  local lines, before = {}, print
  print = function(...) lines[#lines + 1] = table.concat({...}, "\t") end -- luacheck: ignore
  local results = table.pack(pcall(benchmark, ...))
  print = before -- luacheck: ignore
  if not results[1] then error(results[2], 0) end
  return lines, table.unpack(results, 2, results.n)
end

local function nothing() end

TestForms = {}

function TestForms:test_names()
  local lines = run("torch", nothing)
  equals(#lines, 1)
  lu.assertStrMatches(lines[1], "torch: %d+%.%d%d%d%d sec")
  lines = run(nothing)
  lu.assertStrMatches(lines[1], "Done: %d+%.%d%d%d%d sec")
  lines = run(nothing, {times = 3})
  lu.assertStrMatches(lines[1], "Done: .*")
  lines = run("100%", nothing, {})
  lu.assertStrMatches(lines[1], "100%%: %d+%.%d%d%d%d sec")
  lines = run("", nothing)
  lu.assertStrMatches(lines[1], ": %d+%.%d%d%d%d sec")
end

function TestForms:test_callable_objects()
  local calls = 0
  run("object", setmetatable({}, {__call = function() calls = calls + 1 end}))
  equals(calls, 1)
end

function TestForms:test_runs_once_without_arguments()
  local calls, given = 0, nil
  run("x", function(...) calls, given = calls + 1, select("#", ...) end)
  equals({calls, given}, {1, 0})
end

TestResult = {}

function TestResult:test_fields()
  local _, result = run("x", function() return tensor.ones(200, 200):mm(tensor.ones(200, 200)) end,
                        {sync = true})
  for _, field in ipairs {"seconds", "enqueue", "blocked", "busy"} do
    equals(math.type(result[field]), "float", field)
    lu.assertTrue(result[field] >= 0, field)
  end
  equals(result.queued, 0)
  lu.assertAlmostEquals(result.enqueue + result.blocked, result.seconds, 1e-9)
  lu.assertTrue(result.seconds < 10)
  lu.assertTrue(result.busy > 0)
end

function TestResult:test_time_is_wall_time()
  local start = os.clock()
  local lines, result = run("x", function() while os.clock() - start < 0.05 do end end)
  lu.assertTrue(result.seconds >= 0.045)
  lu.assertStrMatches(lines[1], "x: 0%.%d%d%d%d sec")
end

function TestResult:test_several_times()
  local calls = 0
  local lines, result = run("x", function() calls = calls + 1 end, {times = 5, warmup = 3})
  equals(calls, 8)
  equals(result.times, 5)
  lu.assertTrue(result.min <= result.seconds and result.seconds <= result.max)
  lu.assertStrMatches(lines[1],
    "x: %d+%.%d%d%d%d sec  %(median of 5, %d+%.%d%d%d%d to %d+%.%d%d%d%d%)")
  calls = 0
  run("x", function() calls = calls + 1 end, {warmup = 0, times = 1})
  equals(calls, 1)
end

TestQueue = {}

-- Products that take a while: long against the time for which a busy machine may hold back the
-- thread that queues them.
local function product(times, size)
  local x = tensor.ones(size or 500, size or 500)
  sync()
  return function()
    for _ = 1, times do tensor.mm(x, x) end
  end
end

function TestQueue:test_still_queued()
  lu.skipIf(support.synchronous, "nothing stays queued")
  local lines, result = run("tensorlua", product(10, 1000))
  lu.assertStrMatches(lines[1],
    "tensorlua: %d+%.%d%d%d%d sec  %(%d+ operations? still queued%)")
  lu.assertTrue(result.queued >= 1 and result.queued <= 10, result.queued)
  equals(lines[1]:match "%((%d+) ", tostring(result.queued))
  lines = run("one", product(1, 1500))
  lu.assertStrMatches(lines[1], "one: %d+%.%d%d%d%d sec  %(1 operation still queued%)")
end

function TestQueue:test_sync_option()
  local lines, result = run("x", product(10, 1000), {sync = true})
  lu.assertStrMatches(lines[1], "x: %d+%.%d%d%d%d sec")
  equals(result.queued, 0)
  if not support.synchronous then lu.assertTrue(result.blocked > result.enqueue) end
  lines = run("x", product(1, 1500), {sync = false})
  lu.assertStrContains(lines[1], support.synchronous and "sec" or "still queued")
end

function TestQueue:test_what_was_queued_before_is_not_measured()
  local work = product(20)
  local _, alone = run("x", product(20), {sync = true})
  work()
  local _, result = run("x", nothing, {sync = true})
  lu.assertTrue(result.seconds < alone.seconds / 2 + 0.001)
end

TestErrors = {}

function TestErrors:test_of_f_pass_through()
  local line = debug.getinfo(1, "l").currentline + 1
  local ok, message = pcall(run, "x", function() error "boom" end)
  equals(ok, false)
  lu.assertStrMatches(message, "[^:]*test_benchmark%.lua:" .. line .. ": boom")
  local object = {}
  equals(select(2, pcall(run, "x", function() error(object) end)), object)
  _, message = pcall(run, "x", function()
    return tensor.ones(2, 3):mm(tensor.ones(2, 3)) -- the third line
  end)
  lu.assertStrMatches(message, "[^:]*test_benchmark%.lua:" .. line + 6 .. ": mm: cannot .*")
end

function TestErrors:test_traceback_has_the_real_lines()
  local _, _, err = support.run_script [[
local function work()
  error "boom"
end
benchmark("x", work)]]
  lu.assertStrContains(err, "SCRIPT:2: boom\nstack traceback:")
  lu.assertStrContains(err, "lua/tensor/benchmark.lua:")
  lu.assertStrContains(err, "SCRIPT:4: in main chunk")
end

function TestErrors:test_failed_operations()
  local status, out = support.run_script([[
    local x = tensor.ones(2, 2)
    local ok, message = pcall(benchmark, "x", function() x:mm(x) end, {sync = true})
    print(ok, message:match "mm: .*")
    benchmark("y", function() x:mm(x) end, {sync = true})]], {FAULT = "mm:1"})
  equals(status, 0)
  lu.assertStrMatches(out, "false\tmm: injected failure %(queued at SCRIPT:2%)\ny: %S+ sec\n")
end

-- Asks for this error, at the line that called.
local function refused(expected, ...)
  local arguments = table.pack(...)
  local line = debug.getinfo(1, "l").currentline + 2
  local ok, message = pcall(function()
    benchmark(table.unpack(arguments, 1, arguments.n))
  end)
  equals(ok, false)
  raises(expected, error, message, 0)
  lu.assertStrMatches(message, "[^:]*test_benchmark%.lua:" .. line .. ": .*")
end

function TestErrors:test_arguments()
  refused("benchmark: wants a function to run, not number", "x", 3)
  refused("benchmark: wants a function to run, not nil", "x")
  refused("benchmark: wants a function to run, not nil")
  refused("benchmark: wants a function to run, not table", {})
  refused("benchmark: the options must be a table, not number", "x", nothing, 3)
  refused("benchmark: unknown option 'time': sync, warmup or times", "x", nothing, {time = 1})
  refused("benchmark: unknown option '1': sync, warmup or times", "x", nothing, {true})
  refused("benchmark: option sync must be a boolean, not number", "x", nothing, {sync = 1})
  refused("benchmark: option times must be a number, not string", "x", nothing, {times = "3"})
  refused("benchmark: option times cannot be 0", "x", nothing, {times = 0})
  refused("benchmark: option times cannot be 1.5", "x", nothing, {times = 1.5})
  refused("benchmark: option warmup cannot be -1", "x", nothing, {warmup = -1})
end

-- A fourth argument is a mistake, as for every other function.
function TestErrors:test_too_many_arguments()
  lu.assertFalse(pcall(run, "x", nothing, {}, 1), "an argument too many is ignored")
end

TestNesting = {}

function TestNesting:test_within_another()
  local lines = run("outer", function()
    benchmark("inner", product(2), {sync = true})
  end)
  equals(#lines, 2)
  lu.assertStrMatches(lines[1], "inner: .*")
  lu.assertStrMatches(lines[2], "outer: .*")
end

os.exit(lu.LuaUnit.run())
