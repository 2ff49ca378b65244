-- Errors that arrive late: what a failed operation says, where, when, to whom, and what it leaves
-- alone.  Each case is a program of its own, with failures injected through TENSORLUA_FAULT.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, contains = lu.assertEquals, lu.assertStrContains

-- Runs a script under a fault, and asks for this output and success.
local function prints(expected, fault, text, env)
  env = env or {}
  env.FAULT = fault
  local status, out, err = support.run_script(text, env)
  equals({out, err, status}, {expected, "", 0})
end

-- Runs a script under a fault, and asks for exit status 1; gives standard error and output.
local function fails(fault, text, env)
  env = env or {}
  env.FAULT = fault
  local status, out, err = support.run_script(text, env)
  equals(status, 1, out .. err)
  return err, out
end

TestMessage = {}

local READERS = {
  item = "y[{1, 1}]:item()", totable = "y:totable()", tostring = "tostring(y)", print = "print(y)",
  concat = "return 'y = ' .. y", equal = "return y == x", less = "return y[1][1] < 3",
  allclose = "y:allclose(x)", wait = "y:wait()", sync = "sync()", format = "y[1]:tostring()",
  string_format = "('%s'):format(y)",
}

-- The operation, the line that queued it and the line that waited.
for name, reader in pairs(READERS) do
  TestMessage["test_" .. name] = function()
    prints("SCRIPT:5: mm: injected failure (queued at SCRIPT:2)\n", "mm:1", ([[
      local x = tensor.ones(3, 3)
      local y = x:mm(x)
      local z = x + 1
      local ok, message = pcall(function()
        %s
      end)
      print(message)]]):format(reader))
  end
end

function TestMessage:test_uncaught()
  local script = "local x = tensor.ones(%d, %d)\nlocal y = x:mm(x)\nprint(1)\ny:item()"
  local err, out = fails("mm:1", script:format(3, 3))
  equals(out, "1\n")
  contains(err, "SCRIPT:4: item: wants one element") -- what can be checked comes first
  err = fails("mm:1", script:format(1, 1))
  contains(err, support.program ..
    ": SCRIPT:4: mm: injected failure (queued at SCRIPT:2)\nstack traceback:\n")
  equals(select(2, err:gsub("injected failure", "")), 1)
end

function TestMessage:test_which_execution()
  prints("tensor([2.])\tfalse\n", "add:2",
         "local x = tensor{1}\nlocal y, z = x + 1, x + 2\nprint(y, (pcall(z.item, z)))")
end

function TestMessage:test_queued_in_a_function()
  prints("SCRIPT:3: exp: injected failure (queued at SCRIPT:1)\n", "exp:1",
         "local function f(x) return x:exp() end\nlocal y = f(tensor{1})\n" ..
         "local ok, m = pcall(function() y:item() end) print(m)")
  prints("SCRIPT:2: mul: injected failure (queued at SCRIPT:1)\n", "mul:1",
         "local y = select(2, pcall(tensor.mul, tensor{1}, 2))\nlocal ok, m = pcall(y.item, y)\n" ..
         "print(m)")
end

function TestMessage:test_every_operation_can_be_injected()
  for _, case in ipairs {"zeros = tensor.zeros(2)", "randn = tensor.randn(2)", "sum = x:sum()",
                         "clone = x:clone()", "fill_ = x:fill_(1)", "copy_ = x:copy_(x)",
                         "dot = x:dot(x)", "arange = tensor.arange(3)", "exp = x:exp()",
                         "to = x:to('float64')", "reshape = x:reshape(2, 2):t():reshape(4)"} do
    local name, code = case:match "^(%S+) = (.*)"
    prints(("SCRIPT:3: %s: injected failure (queued at SCRIPT:2)\n"):format(name), name .. ":1",
      ("local x = tensor{1, 2, 3, 4}\nlocal y = %s\n" ..
       "local ok, m = pcall(function() y:wait() end) print(m)"):format(code))
  end
end

TestSticky = {}

function TestSticky:test_every_read_and_every_dependent()
  prints("false\tfalse\tfalse\tfalse\ttrue\n", "mm:1", [[
    local x = tensor.ones(2, 2)
    local y = x:mm(x)
    local z = (y + 1):sum()
    local w = x:clone()
    w[1] = y[1]
    local first = select(2, pcall(y.totable, y)):match "mm: .*"
    io.write(tostring(pcall(y.totable, y)), "\t")
    io.write(tostring(pcall(z.item, z)), "\t", tostring(pcall(w.totable, w)), "\t")
    local late = z * 2
    local ok, message = pcall(late.item, late)
    print(ok, message:match "mm: .*" == first)]])
end

function TestSticky:test_the_first_in_program_order()
  prints("SCRIPT:5: exp: injected failure (queued at SCRIPT:2)\n" ..
         "SCRIPT:6: log: injected failure (queued at SCRIPT:3)\nnothing left\n", "exp:1,log:1", [[
    local x = tensor.ones(200, 200)
    local b = x:exp()
    local c = x:log()
    local d = c:mm(x) + b
    print(select(2, pcall(sync)))
    print(select(2, pcall(sync)))
    sync()
    print "nothing left"]])
  -- Also when the later one is certain to have run first.
  prints("SCRIPT:4: mm: injected failure (queued at SCRIPT:2)\n", "mm:1,exp:1", [[
    local x = tensor.ones(500, 500) local y = tensor{1}
    local slow = x:mm(x):mm(x)
    local fast = y:exp()
    print(select(2, pcall(sync)))
    pcall(fast.item, fast)]])
end

-- An operand that failed earlier in the program decides, not the first in the list of operands.
function TestSticky:test_two_failed_operands()
  prints("SCRIPT:5: exp: injected failure (queued at SCRIPT:2)\n", "exp:1,log:1", [[
    local x = tensor{1}
    local a = x:exp()
    local b = x:log()
    local c = b + a
    print(select(2, pcall(c.item, c)))
    pcall(b.item, b)]])
end

function TestSticky:test_catch_and_continue()
  prints("caught\t1\ncaught\t2\ntensor([4., 6.])\n", "mul:1,mul:3", [[
    local caught = 0
    for i = 1, 4 do
      local y = tensor{1, 2} * 2 + i
      local ok = pcall(y.wait, y)
      if not ok then caught = caught + 1 print("caught", caught) end
    end
    sync()
    print(tensor{1, 2} * 2 + 2)]])
end

TestOthers = {}

function TestOthers:test_independent_tensors_are_untouched()
  prints("tensor([2., 3.])\ttensor([1., 2.])\ttensor([2., 4.])\n", "mm:1", [[
    local x, m = tensor{1, 2}, tensor.ones(2, 2)
    local a, failed, b = x + 1, m:mm(m), x * 2
    pcall(failed.wait, failed)
    print(a, x, b)]])
end

function TestOthers:test_in_place_on_a_failed_tensor()
  prints("false\tfalse\tfalse\n", "exp:1", [[
    local y = tensor{1, 2}:exp()
    y:add_(1)
    local a = pcall(y.totable, y)
    y[1] = 5
    y[{{1, 1}}]:fill_(3)
    print(a, (pcall(y.totable, y)), (pcall(function() return y[1]:item() end)))]])
end

function TestOthers:test_a_failed_in_place_operation()
  prints("false\ttensor([1., 2.])\tfalse\n", "mul:1", [[
    local x = tensor{1, 2}
    local before = x + 0
    x:mul_(3)
    local view = x[1]
    print((pcall(x.totable, x)), before, (pcall(view.item, view)))]])
end

function TestOthers:test_a_write_of_the_whole_tensor_heals()
  prints("tensor([7., 7.])\ttensor([1., 2.])\ttensor([3., 3.])\ttensor([0., 0.])\n",
         "exp:1,exp:2,exp:3,exp:4", [[
    local x = {}
    for i = 1, 4 do x[i] = tensor{1, 2}:exp() end
    x[1]:fill_(7)
    x[2]:copy_(tensor{1, 2})
    x[3][{}] = 3
    x[4]:reshape(2, 1):zero_()
    for i = 1, 4 do pcall(sync) end
    print(table.unpack(x))]])
end

TestEnd = {}

function TestEnd:test_unseen_failure_is_reported()
  local err, out = fails("mm:1", "local x = tensor.ones(2, 2)\nx = x:mm(x)\nprint 'done'")
  equals(out, "done\n")
  equals(err, support.program .. ": mm: injected failure (queued at SCRIPT:2)\n")
end

function TestEnd:test_of_a_collected_tensor_too()
  local err = fails("add:3", "local x = tensor{1}\nfor i = 1, 10 do\n  x = x * 1 + 1\nend\n" ..
                    "x = nil collectgarbage() collectgarbage()")
  equals(err, support.program .. ": add: injected failure (queued at SCRIPT:3)\n")
end

function TestEnd:test_a_seen_failure_is_not()
  prints("", "mm:1", "local x = tensor.ones(2, 2)\nx = x:mm(x)\npcall(x.wait, x)")
  prints("", "mm:1", "local x = tensor.ones(2, 2)\nx = x:mm(x)\npcall(sync)")
end

function TestEnd:test_besides_another_error()
  local err = fails("mm:1", "local x = tensor.ones(2, 2)\nx = x:mm(x)\nerror 'other'")
  contains(err, "SCRIPT:3: other")
  contains(err, "mm: injected failure (queued at SCRIPT:2)")
end

function TestEnd:test_os_exit_in_the_middle()
  local status = support.run_script(
    "local x = tensor.ones(600, 600)\nfor i = 1, 20 do x = x:mm(x) / 600 end\nos.exit(7)")
  equals(status, 7)
  status = support.run_script(
    "local x = tensor.ones(600, 600)\nfor i = 1, 20 do x = x:mm(x) / 600 end\nos.exit(6, true)")
  equals(status, 6)
end

TestSynchronous = {}

function TestSynchronous:test_raises_on_the_own_line()
  prints("SCRIPT:3: mm: injected failure (queued at SCRIPT:3)\ntensor([2.])\n", "mm:1", [[
    local x = tensor.ones(2, 2)
    local ok, message = pcall(function()
      return x:mm(x)
    end)
    print(message)
    print(tensor{1} + 1)]], {SYNC = "1"})
end

function TestSynchronous:test_uncaught()
  local err, out = fails("mm:1", "local x = tensor.ones(2, 2)\nx = x:mm(x)\nprint 'not reached'",
                         {SYNC = "1"})
  equals(out, "")
  contains(err, "SCRIPT:2: mm: injected failure (queued at SCRIPT:2)")
  equals(select(2, err:gsub("injected failure", "")), 1)
end

function TestSynchronous:test_in_place()
  prints("false\tfalse\ttensor([5.])\n", "add:1", [[
    local x = tensor{1}
    local a = pcall(x.add_, x, 1)
    local b = pcall(x.item, x)
    x:fill_(5)
    print(a, b, x)]], {SYNC = "1"})
end

TestAllocation = {}

-- Every buffer fails once in turn: each time the script ends with that error, in words.
function TestAllocation:test_every_buffer()
  local script = [[
    local x = tensor.randn(100, 100)
    local y = x:mm(x) + tensor.ones(100)
    local z = y:sum(1):exp()
    y:add_(y:t())
    print(z:mean():item() > 0, y:reshape(10000):max():item() > 0)]]
  for _, mode in ipairs {"0", "1"} do
    local failures = 0
    for n = 1, 30 do
      local status, out, err = support.run_script(script, {FAULT = "alloc:" .. n, SYNC = mode})
      if status == 0 then
        equals(out, "true\ttrue\n")
        break
      end
      failures = n
      equals(status, 1)
      lu.assertStrMatches(err, ".*: %l+_?: .* %(queued at SCRIPT:%d%).*")
    end
    lu.assertTrue(failures >= 7 and failures < 30, failures .. " allocations")
  end
end

-- After a failure and a collection the whole budget is there again.
function TestAllocation:test_nothing_leaks()
  for n = 1, 6 do
    prints("true\n", "alloc:" .. n, [[
      local function work()
        local x = tensor.zeros(500, 500)
        local y = x + 1
        local z = y:mm(x):exp()
        return (z + tensor.ones(500, 500)):sum():item()
      end
      pcall(work)
      collectgarbage() collectgarbage()
      pcall(sync)
      print((pcall(function() return tensor.zeros((16 << 20) // 4):wait() end)))]],
      {MEMORY = "16M"})
  end
end

TestMemory = {}

function TestMemory:test_refused_on_its_own_line()
  prints("SCRIPT:3: ones: out of memory: 8388608 bytes wanted, 12582912 of 16777216 in use\n", nil,
         [[
    local x, y = tensor.ones(1 << 21), tensor.ones(1 << 20)
    local ok, message = pcall(function()
      return tensor.ones(1 << 21)
    end)
    print(message)]], {MEMORY = "16M"})
end

function TestMemory:test_larger_than_the_budget()
  prints("SCRIPT:2: zeros: out of memory: 4294967296 bytes wanted, 0 of 16777216 in use\n", nil, [[
    local ok, message = pcall(function()
      return tensor.zeros(1 << 30)
    end)
    print(message)]], {MEMORY = "16M"})
end

function TestMemory:test_garbage_is_collected_first()
  prints("5\n", nil, [[
    collectgarbage "stop"
    local x
    for i = 1, 5 do
      x = nil
      x = tensor.full({3 << 20}, i)
    end
    print(("%d"):format(x[1]:item()))]], {MEMORY = "16M"})
end

function TestMemory:test_dead_temporaries_far_beyond_the_budget()
  prints("1000\n", nil, [[
    local x = tensor.zeros(1 << 19)
    for i = 1, 1000 do x = x + 1 end
    print(("%d"):format(x:max():item()))]], {MEMORY = "16M"})
end

-- A refused tensor leaves everything as it was.
function TestMemory:test_after_a_refusal()
  prints("tensor([2., 2.])\ttrue\n", nil, [[
    local x = tensor.ones(2)
    for i = 1, 10 do pcall(tensor.zeros, 1 << 30) pcall(tensor.rand, 1 << 30) end
    print(x + 1, (pcall(sync)))]], {MEMORY = "1M"})
end

TestEnvironment = {}

local function refused(expected, env)
  local status, out, err = support.run_script("print(tensor.ones(1))", env)
  equals({status, out}, {1, ""}, expected)
  contains(err, expected)
end

function TestEnvironment:test_bad_values()
  for _, text in ipairs {"0", "-1", "1025", "two", "1.5", "4 ", "99999999999999999999"} do
    refused(("TENSORLUA_THREADS: '%s' is not a number from 1 to 1024"):format(text),
            {THREADS = text})
  end
  for _, text in ipairs {"0", "-5", "lots", "1MB", "1m", "inf", "nan", "M"} do
    refused(("TENSORLUA_MEMORY: '%s' is not a size such as 512M or 4G"):format(text),
            {MEMORY = text})
  end
  refused("TENSORLUA_SYNC: 'yes' is neither 0 nor 1", {SYNC = "yes"})
  refused("TENSORLUA_DEVICE: there is no device 'cuda' here, only 'cpu'", {DEVICE = "cuda"})
  refused("TENSORLUA_ISA: ", {ISA = "mmx"})
end

function TestEnvironment:test_bad_faults()
  for text, expected in pairs {
    ["mm"] = "'mm' is not of the form operation:count", [":1"] = "is not of the form",
    ["mm:"] = "'mm:' wants a count from 1 on", ["mm:0"] = "'mm:0' wants a count from 1 on",
    ["mm:x"] = "'mm:x' wants a count from 1 on", ["mm:1x"] = "wants a count from 1 on",
    ["spin:1"] = "there is no operation 'spin'", ["mm:1,,mm:2"] = "is not of the form",
    ["mm:1.5"] = "wants a count from 1 on",
  } do
    refused("TENSORLUA_FAULT: ", {FAULT = text})
    refused(expected, {FAULT = text})
  end
end

-- A number with a sign wraps around in C, and then never comes.
function TestEnvironment:test_negative_fault_count()
  refused("TENSORLUA_FAULT: 'mm:-1' wants a count from 1 on", {FAULT = "mm:-1"})
end

function TestEnvironment:test_good_values()
  for _, env in ipairs {{THREADS = "1"}, {THREADS = "7"}, {MEMORY = "1K"}, {MEMORY = "0.5G"},
                        {MEMORY = "1e6"}, {SYNC = "0"}, {SYNC = "1"}, {SYNC = ""}, {THREADS = ""},
                        {MEMORY = ""}, {DEVICE = "cpu"}, {DEVICE = ""}, {ISA = "baseline"},
                        {ISA = ""}, {FAULT = ""}, {FAULT = "mm:1,add:2"}} do
    local status, out, err = support.run_script("print(tensor.ones(1))", env)
    equals({status, out, err}, {0, "tensor([1.])\n", ""})
  end
  local _, out = support.run_script("print(tensor.get_num_threads())", {THREADS = "3"})
  equals(out, "3\n")
end

os.exit(lu.LuaUnit.run())
