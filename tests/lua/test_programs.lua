-- Random programs (programs.lua) give the same bits fused or not, on any number of threads, with
-- compiled functions or the functions themselves, and with each command run at once; and, but for
-- the last two, the same failures, the first in program order first.
package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path
local support = require "support"
local programs = require "programs"
local lu = require "luaunit"

local STEPS = 40
local SEEDS = support.slow and 8 or 30
local SYNCHRONOUS = support.slow and 4 or 20 -- seeds that are run in another process, too

local function can_fail(seed) return seed % programs.FAILING == 0 end

-- A digest of 64 bits, which another process can say.
local function digest(value)
  local hash = #value
  for i = 1, #value - 7, 8 do
    hash = (hash ~ string.unpack("<j", value, i)) * 0x100000001b3
    hash = hash ~ hash >> 29
  end
  for i = #value - #value % 8 + 1, #value do hash = (hash ~ value:byte(i)) * 0x100000001b3 end
  return hash
end

if arg[1] then -- as that process
  for i = 1, #arg do
    for _, value in ipairs(programs.run(tonumber(arg[i]), STEPS)) do
      print(arg[i], digest(value))
    end
  end
  os.exit(true, true)
end

local function run(seed, threads, fusion)
  tensor.set_num_threads(threads)
  tensor.fusion(fusion)
  return programs.run(seed, STEPS)
end

TestPrograms = {}

function TestPrograms:setUp()
  self.fusion, self.threads = tensor.fusion(), tensor.get_num_threads()
  self.compile = tensor.compile
end

function TestPrograms:tearDown()
  tensor.fusion(self.fusion)
  tensor.set_num_threads(self.threads)
  tensor.compile = self.compile
end

function TestPrograms:test_fusion_and_threads()
  for seed = 1, SEEDS do
    local expected = run(seed, 1, false)
    for _, way in ipairs {{1, true}, {4, true}, {4, false}} do
      local difference = programs.difference(expected, run(seed, way[1], way[2]))
      if difference then
        lu.fail(("seed %d, %d threads, fusion %s: %s"):format(seed, way[1], way[2], difference))
      end
    end
  end
end

-- A replay tells of a failure as one of the call's line.
function TestPrograms:test_compiled()
  for seed = 1001, 1000 + SEEDS do
    if not can_fail(seed) then
      local compiled = run(seed, 2, true)
      tensor.compile = function(f) return f end
      local difference = programs.difference(run(seed, 2, true), compiled)
      tensor.compile = self.compile
      if difference then lu.fail(("seed %d: %s"):format(seed, difference)) end
    end
  end
end

-- Where commands run at once their failures are raised at once, and another program goes on.
function TestPrograms:test_synchronous()
  local seeds, expected = {}, {}
  for seed = 2001, 2000 + SYNCHRONOUS do
    if not can_fail(seed) then
      seeds[#seeds + 1] = seed
      for _, value in ipairs(run(seed, 4, true)) do
        expected[#expected + 1] = ("%d\t%d"):format(seed, digest(value))
      end
    end
  end
  local status, out, err = support.shell(("TENSORLUA_SYNC=1 %s %s %s"):format(
    support.quote(support.program), support.quote(arg[0]), table.concat(seeds, " ")))
  lu.assertEquals(err, "")
  lu.assertEquals(status, 0)
  local at = 0
  for line in out:gmatch "[^\n]+" do
    at = at + 1
    lu.assertEquals(line, expected[at], "value " .. at)
  end
  lu.assertEquals(at, #expected)
end

-- ---- failures ----

local failing = {
  function(x) return x // (x - x), "floor_divide: integer division by zero" end,
  function(x) return x ^ (x * -1), "pow: an integer to the power -1" end,
  function(x) return x[x * 20000], "index: index 20000 is out of range" end,
  function(x)
    local inverse = tensor.linalg.inv(tensor.zeros(2, 2))
    return inverse:sum():to("int64"):expand(x.shape), "linalg.inv: "
  end,
}

-- Failures among large operations that are joined: raised in program order, by sync() and by what
-- depends on them, each time; all else has its value.
local function check_failures(order)
  local x = tensor.ones(19000, {dtype = "int64"})
  local big = tensor.ones(300, 300)
  local values, texts, whole = {}, {}, x * 2 + 1
  local busy <close> = big:mm(big)
  local last = x:clone() -- what a failure reaches at last, in place
  for i, kind in ipairs(order) do
    local value, text = failing[kind](x)
    values[i], texts[i] = (value + whole) * 3, text
    whole = whole * 2 - x
    last:add_(values[i])
  end
  local sum = (whole * x):sum()
  for i = 1, #order do lu.assertErrorMsgContains(texts[i], sync) end
  sync()
  for _ = 1, 2 do
    for i, value in ipairs(values) do
      lu.assertErrorMsgContains(texts[i], value.wait, value)
      lu.assertErrorMsgContains(texts[i], function() return (value:gt(1)):any():item() end)
    end
    lu.assertErrorMsgContains(texts[1], last.wait, last)
  end
  lu.assertEquals(sum:item(), 19000 * (2 ^ (#order + 1) + 1))
  lu.assertEquals(whole:amin():item(), 2 ^ (#order + 1) + 1)
  last:fill_(7)
  lu.assertEquals(last:sum():item(), 7 * 19000)
end

function TestPrograms:test_failures_in_program_order()
  if support.synchronous then return end -- raised where they are
  math.randomseed(5)
  for round = 1, 12 do
    local order = {1, 2, 3, 4}
    for i = 4, 2, -1 do
      local j = math.random(i)
      order[i], order[j] = order[j], order[i]
    end
    tensor.set_num_threads(round % 2 == 0 and 4 or 1)
    tensor.fusion(round % 3 > 0)
    check_failures(order)
  end
end

-- ---- what was found this way ----

-- A product multiplies in the same order whether its elements come from memory or not.
function TestPrograms:test_product_at_the_end_of_a_group()
  local x = tensor.rand(20000, {dtype = "float64"}) * 0.2 + 0.9
  local function product()
    sync()
    return ((x + 0.001) * 0.999):prod():item()
  end
  tensor.fusion(false)
  local expected = product()
  tensor.fusion(true)
  for _ = 1, 20 do lu.assertEquals(product(), expected) end
end

-- What a compiled function recorded may be collected before its commands run.
function TestPrograms:test_collected_while_its_commands_wait()
  local x = tensor.arange(1, 64):reshape(8, 8)
  local big = tensor.ones(300, 300)
  for _ = 1, 20 do
    local total
    do
      local f = tensor.compile(function(y) return y:t():sum() end)
      f(x)
      sync()
      for _ = 1, 4 do big:mm(big) end
      total = f(x)
    end
    collectgarbage()
    collectgarbage()
    lu.assertEquals(total:item(), 2080)
  end
end

function TestPrograms:test_no_elements_to_divide()
  for _, dtype in ipairs {"int64", "int32", "int8"} do
    local x = tensor.zeros(0, {dtype = dtype})
    for _, name in ipairs {"floor_divide", "remainder", "fmod"} do
      lu.assertEquals(tensor[name](x, 0):totable(), {})
    end
    lu.assertEquals((x ^ -1):totable(), {})
  end
  sync()
end

-- Of many elements that fail, in chunks that run at the same time, the first is told.
function TestPrograms:test_the_first_element_that_fails()
  local n = 1000000
  local powers = -tensor.arange(1, n, {dtype = "int64"})
  local places = tensor.arange(n + 1, 2 * n, {dtype = "int64"})
  local x = tensor.ones(n, {dtype = "int64"})
  tensor.set_num_threads(4)
  for _ = 1, 10 do
    lu.assertErrorMsgContains("to the power -1:", function() return (x ^ powers):wait() end)
    lu.assertErrorMsgContains("pow: an integer", function() return (x ^ powers):wait() end)
    lu.assertErrorMsgContains("index 1000001 is out of range", function() x[places]:wait() end)
    lu.assertErrorMsgContains("floor_divide: integer division by zero",
                              function() (x // 0):wait() end)
  end
end

os.exit(lu.LuaUnit.run())
