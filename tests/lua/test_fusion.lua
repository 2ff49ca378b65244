-- Fusion changes no bit: random graphs of operations with in-place writes, reads of intermediate
-- values before and after, releases at random moments, views, broadcasting and changes of dtype,
-- run with fusion on and off.
package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path
require "support"
local lu = require "luaunit"

local ROWS, COLUMNS = 150, 128 -- above the size from which commands are joined
local unary = {"neg", "abs", "tanh", "sigmoid", "relu"}
local binary = {"add", "sub", "mul", "maximum", "minimum"}

-- Runs the graph that the seed stands for; returns all values that it read, in order.
local function run(seed, steps)
  math.randomseed(seed)
  tensor.manual_seed(seed)
  local random = math.random
  local live, read = {}, {}
  local function fresh(dtype) return tensor.rand(ROWS, COLUMNS, {dtype = dtype}) end
  for i = 1, 6 do live[i] = fresh(i % 3 == 0 and "float64" or "float32") end
  local row = tensor.rand(COLUMNS)
  local column = tensor.rand(ROWS, 1)
  local function pick() return live[random(#live)] end
  local function operand()
    local kind = random(12)
    if kind == 1 then return random() end
    if kind == 2 then return row end
    if kind == 3 then return column end
    if kind == 4 then return pick()[random(ROWS)] end
    return pick()
  end
  local function keep(value)
    if #live < 12 then live[#live + 1] = value else live[random(#live)] = value end
  end
  for _ = 1, steps do
    local kind = random(30)
    if kind <= 12 then
      keep(tensor[binary[random(#binary)]](pick(), operand()))
    elseif kind <= 16 then
      keep(pick()[unary[random(#unary)]](pick()))
    elseif kind <= 18 then
      local x = pick()
      x[({"add_", "mul_", "sub_"})[random(3)]](x, operand())
      x:tanh_()
    elseif kind == 19 then
      local x, at = pick(), random(ROWS - 10)
      x[{ {at, at + 9}, {} }]:add_(random())
    elseif kind == 20 then
      pick():fill_(random())
    elseif kind == 21 then
      pick():copy_(operand() + tensor.zeros(1))
    elseif kind == 22 then
      read[#read + 1] = pick():clone()
    elseif kind == 23 then
      read[#read + 1] = (pick() * operand()):sum(random(2))
      read[#read + 1] = (pick() + operand()):max()
    elseif kind == 24 then
      read[#read + 1] = pick()[random(ROWS)][random(COLUMNS)]:item()
    elseif kind == 25 then
      keep(pick():to(random(2) == 1 and "float32" or "float64"))
    elseif kind == 26 then
      keep(pick():reshape(COLUMNS, ROWS):t():clone())
    elseif kind == 27 then
      table.remove(live, random(#live))
      live[#live + 1] = fresh()
    elseif kind == 28 then
      collectgarbage()
    elseif kind == 29 then
      local x <close> = pick() * 2 -- released at once
      keep(x + 1)
    else
      -- A chain whose temporaries nobody keeps.
      local x, y = pick(), pick()
      keep((((x * y + 2) * x - 1) * y + x) * 0.01 - y)
    end
  end
  for _, x in ipairs(live) do read[#read + 1] = x end
  return read
end

local function compare(seed, steps)
  tensor.fusion(false)
  local expected = run(seed, steps)
  tensor.fusion(true)
  local actual = run(seed, steps)
  lu.assertEquals(#actual, #expected)
  for i = 1, #expected do
    lu.assertTrue(expected[i] == actual[i], ("seed %d, value %d of %d"):format(seed, i, #expected))
  end
end

TestFusion = {}

function TestFusion:setUp()
  self.before, self.threads = tensor.fusion(), tensor.get_num_threads()
end

function TestFusion:tearDown()
  tensor.fusion(self.before)
  tensor.set_num_threads(self.threads)
end

function TestFusion:test_random_graphs()
  local seeds = os.getenv("TENSORLUA_TEST_SAN") and 20 or 100
  for seed = 1, seeds do
    tensor.set_num_threads(seed % 4 + 1)
    compare(seed, 120)
  end
end

function TestFusion:test_an_intermediate_is_read_before_and_after()
  local x, y = tensor.randn(200, 200), tensor.randn(200, 200)
  local product = x * y
  local sum = product + 2
  local before = product:clone()
  x:zero_()
  lu.assertTrue(product == before)
  lu.assertTrue(sum == before + 2)
end

function TestFusion:test_an_input_is_overwritten_while_an_intermediate_lives()
  local x = tensor.ones(200, 200)
  local double = x * 2
  local triple = double + 1
  x:add_(5)
  lu.assertEquals(double:sum():item(), 2 * 40000)
  lu.assertEquals(triple:sum():item(), 3 * 40000)
  lu.assertEquals(x:sum():item(), 6 * 40000)
end

function TestFusion:test_an_input_is_released_while_an_intermediate_lives()
  local double
  do
    local x <close> = tensor.ones(200, 200)
    double = x * 2
    local sum <close> = double + 1
  end
  collectgarbage()
  sync()
  lu.assertEquals(double:sum():item(), 2 * 40000)
end

function TestFusion:test_values_that_keep_being_read_are_right_too()
  local x = tensor.ones(200, 200)
  for i = 1, 10 do
    local a = x * i
    local b = a + 1
    lu.assertEquals(b:sum():item(), (i + 1) * 40000)
    lu.assertEquals(a:sum():item(), i * 40000)
  end
end

function TestFusion:test_is_ready_of_an_intermediate_becomes_true()
  local x = tensor.ones(300, 300)
  local a = x * 2
  local b = a + 1
  sync()
  local deadline = os.time() + 20
  while not a:is_ready() do lu.assertTrue(os.time() < deadline) end
  lu.assertEquals(a:sum():item(), 2 * 90000)
end

function TestFusion:test_reductions_end_a_group()
  local x, y = tensor.randn(300, 1000), tensor.randn(300, 1000)
  local function results()
    local difference = x - y
    local wide = x:to("float64")
    return {
      (x * y):sum(), (x * y + 1):mean(), ((x - y) ^ 2):mean(), (x * 2):max(), (-x):min(2),
      (x * y):sum(2), (x + y):max(2, true), (x + y):sum(1), (wide * 3):sum(2),
      difference:sum(), difference:abs():sum(2), (x:t() + y:t()):sum(2),
      (x - x:max(2, true)):exp():sum(2, true), tensor.rand(70001):neg():sum(),
    }
  end
  tensor.fusion(false)
  tensor.manual_seed(1)
  local expected = results()
  tensor.fusion(true)
  for _ = 1, 5 do
    tensor.manual_seed(1)
    local actual = results()
    for i = 1, #expected do lu.assertTrue(actual[i] == expected[i], "result " .. i) end
  end
end

-- What is copied into an input was computed before a later operation read it.
function TestFusion:test_an_input_is_overwritten_by_an_earlier_value()
  for _ = 1, 50 do
    local x, y, big = tensor.full({200, 200}, 3), tensor.zeros(200, 200), tensor.ones(400, 400)
    sync()
    local busy = big:mm(big) -- the rest gathers in the queue meanwhile
    local early = y + 1
    local difference = x - y
    x:copy_(early)
    lu.assertEquals(difference:max():item(), 3)
    lu.assertEquals(difference:min():item(), 3)
    lu.assertEquals(x:max():item(), 1)
  end
end

function TestFusion:test_is_ready_after_other_threads()
  local x = tensor.ones(300, 300)
  local a = x * 2
  local b = a + 1
  b:wait()
  tensor.set_num_threads(2)
  local deadline = os.time() + 20
  while not a:is_ready() do lu.assertTrue(os.time() < deadline) end
end

function TestFusion:test_the_sign_of_zero()
  local values = {}
  for i = 1, 20000 do values[i] = i % 3 == 0 and -0.0 or i % 7 == 0 and 0.0 or 1 end
  local x = tensor(values)
  lu.assertEquals(1 / (x * 1):min():item(), -math.huge)
  lu.assertEquals(1 / x:min():item(), -math.huge)
  lu.assertEquals(1 / (-x):max():item(), math.huge)
  lu.assertEquals(1 / (x:reshape(100, 200):min(1)[3]):item(), -math.huge)
end

function TestFusion:test_the_switch()
  lu.assertErrorMsgContains("fusion: wants true or false", tensor.fusion, 1)
  tensor.fusion(false)
  lu.assertFalse(tensor.fusion())
  tensor.fusion(true)
  lu.assertTrue(tensor.fusion())
end

os.exit(lu.LuaUnit.run())
