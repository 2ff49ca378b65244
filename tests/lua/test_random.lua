-- Random numbers: one stream a seed, the same whatever the cuts, the threads and the timing.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

local BLOCK = 1 << 18 -- positions of one offset of the stream

TestSeed = {}

-- cuRAND's, with the same seed.
function TestSeed:test_known_values()
  tensor.manual_seed(42)
  local expected = {0.194019, -0.97019, 1.92393, -1.23562, 2.16137}
  local x = tensor.randn(5):totable()
  for i, value in ipairs(expected) do lu.assertAlmostEquals(x[i], value, 6e-6) end
end

function TestSeed:test_reproduces()
  for _, seed in ipairs {0, 1, -1, 42, math.maxinteger, math.mininteger} do
    for _, name in ipairs {"rand", "randn"} do
      for _, dtype in ipairs {"float32", "float64"} do
        tensor.manual_seed(seed)
        local x = tensor[name](3, 5, {dtype = dtype})
        tensor.manual_seed(seed)
        lu.assertTrue(tensor[name](3, 5, {dtype = dtype}) == x, name)
        lu.assertTrue(tensor[name](3, 5, {dtype = dtype}) ~= x, name)
      end
    end
    equals(tensor.initial_seed(), seed)
  end
  tensor.manual_seed(1)
  local x = tensor.rand(9)
  tensor.manual_seed(2)
  lu.assertTrue(tensor.rand(9) ~= x)
end

function TestSeed:test_a_fresh_seed_can_be_told()
  local script = "local x = tensor.rand(3) print(tensor.initial_seed()) print(x)"
  local _, first = support.run_script(script)
  local _, second = support.run_script(script)
  lu.assertNotEquals(first, second)
  local seed, text = first:match "^(%d+)\n(.*)"
  local _, again = support.run_script(("tensor.manual_seed(%s) print(tensor.rand(3))"):format(seed))
  equals(again, text)
end

function TestSeed:test_arguments()
  tensor.manual_seed(3.0)
  equals(tensor.initial_seed(), 3)
  raises("manual_seed: argument 1 must be an integer, not 1.5", tensor.manual_seed, 1.5)
  raises("manual_seed: argument 1 must be an integer, not missing", tensor.manual_seed)
  raises("manual_seed: argument 1 must be an integer, not string", tensor.manual_seed, "1")
  raises("manual_seed: 2 arguments are too many: at most 1", tensor.manual_seed, 1, 2)
end

TestStream = {}

-- The first n numbers after a seed, in calls of these sizes, one behind the other.
local function in_calls(name, sizes, dtype)
  tensor.manual_seed(99)
  local total = 0
  for _, size in ipairs(sizes) do total = total + size end
  local whole, at = tensor.zeros(total, {dtype = dtype}), 0
  for _, size in ipairs(sizes) do
    if size > 0 then
      whole[{{at + 1, at + size}}] = tensor[name](size, {dtype = dtype})
    else
      tensor[name](0, {dtype = dtype})
    end
    at = at + size
  end
  return whole
end

function TestStream:test_calls_continue_each_other()
  for _, name in ipairs {"rand", "randn"} do
    for _, dtype in ipairs {"float32", "float64"} do
      local whole = in_calls(name, {300}, dtype)
      for _, sizes in ipairs {{1, 299}, {2, 298}, {3, 0, 1, 296}, {4, 4, 4, 288}, {7, 13, 280},
                              {150, 149, 1}, {255, 45}} do
        lu.assertTrue(in_calls(name, sizes, dtype) == whole,
                      name .. dtype .. support.shape_text(sizes))
      end
    end
  end
end

function TestStream:test_across_blocks()
  local n = BLOCK + 1000
  for _, name in ipairs {"rand", "randn"} do
    for _, dtype in ipairs {"float32", "float64"} do
      local whole = in_calls(name, {n}, dtype)
      for _, sizes in ipairs {{BLOCK - 1, 1, 1000}, {BLOCK, 1000},
                              {BLOCK // 2 + 1, n - BLOCK // 2 - 1}, {65536, 65537, n - 131073}} do
        lu.assertTrue(in_calls(name, sizes, dtype) == whole,
                      name .. dtype .. support.shape_text(sizes))
      end
    end
  end
end

function TestStream:test_the_shape_does_not_matter()
  local flat = in_calls("randn", {60})
  tensor.manual_seed(99)
  lu.assertTrue(tensor.randn(3, 4, 5):reshape(60) == flat)
end

function TestStream:test_same_on_any_number_of_threads()
  local first
  support.each_thread_count(function()
    local results = {}
    for _, name in ipairs {"rand", "randn"} do
      results[#results + 1] = in_calls(name, {700001, 5})
      results[#results + 1] = in_calls(name, {300001, 5}, "float64")
    end
    first = first or results
    for i = 1, #results do lu.assertTrue(results[i] == first[i], i) end
  end)
end

-- The place in the stream is taken when the call is made.
function TestStream:test_order_of_calls_counts()
  tensor.manual_seed(5)
  local a = tensor.randn(100, 100)
  local product = a:mm(a)
  local b = tensor.randn(10)
  tensor.manual_seed(5)
  tensor.randn(100, 100)
  lu.assertTrue(tensor.randn(10) == b)
  lu.assertTrue(a:mm(a) == product)
end

TestDistribution = {}

function TestDistribution:test_uniform()
  tensor.manual_seed(1)
  for _, dtype in ipairs {"float32", "float64"} do
    local n = 1000000
    local x = tensor.rand(n, {dtype = dtype})
    lu.assertTrue(x:min():item() > 0)
    lu.assertTrue(x:max():item() <= 1)
    lu.assertAlmostEquals(x:mean():item(), 0.5, 5 * math.sqrt(1 / 12 / n))
    local y = x - 0.5
    lu.assertAlmostEquals((y * y):mean():item(), 1 / 12, 1e-3)
  end
end

function TestDistribution:test_normal()
  tensor.manual_seed(1)
  for _, dtype in ipairs {"float32", "float64"} do
    local n = 1000000
    local x = tensor.randn(n, {dtype = dtype})
    lu.assertAlmostEquals(x:mean():item(), 0, 5 / math.sqrt(n))
    lu.assertAlmostEquals((x * x):mean():item(), 1, 5 * math.sqrt(2 / n))
    lu.assertAlmostEquals((x ^ 3):mean():item(), 0, 5 * math.sqrt(15 / n))
    lu.assertAlmostEquals((x * x * x * x):mean():item(), 3, 5 * math.sqrt(96 / n))
    lu.assertTrue(x:abs():max():item() < 7)
    -- Neighbours are not related.
    lu.assertAlmostEquals((x[{{1, n - 1}}] * x[{{2, n}}]):mean():item(), 0, 5 / math.sqrt(n))
  end
end

-- Five standard deviations around the mean of n independent draws.
local function assert_mean(x, mean, variance)
  local n = x:numel()
  lu.assertAlmostEquals(x:to("float64"):mean():item(), mean, 5 * math.sqrt(variance / n))
end

function TestDistribution:test_integers()
  tensor.manual_seed(2)
  local x = tensor.randint(-3, 6, {1000, 100})
  equals(x.dtype, "int64")
  equals({x:amin():item(), x:amax():item()}, {-3, 6})
  assert_mean(x, 1.5, 99 / 12)
  for value = -3, 6 do assert_mean(x:eq(value), 0.1, 0.09) end
  equals(tensor.randint(5, 5, {2}, {dtype = "uint8"}):totable(), {5, 5})
  local top = math.maxinteger
  equals(tensor.randint(top, top, {2}):totable(), {top, top})
  equals(tensor.randint_like(tensor.ones(2, 3), 1, 1).shape, {2, 3})
  raises("randint: there is no integer from 3 to 2", tensor.randint, 3, 2, {1})
  raises("randint: from 0 to 9223372036854775807 are more than 2^53 integers", tensor.randint, 0,
         top, {1})
end

function TestDistribution:test_permutations()
  tensor.manual_seed(3)
  local n = 1000
  local order = tensor.randperm(n)
  lu.assertTrue((order:sort()) == tensor.arange(n, {dtype = "int64"}))
  lu.assertFalse(order == tensor.randperm(n))
  equals(tensor.randperm(0):totable(), {})
  equals(tensor.randperm(3, {dtype = "int16"}).dtype, "int16")
  local first = tensor.zeros(2000) -- every element is as likely to come first
  for i = 1, 2000 do first[i] = tensor.randperm(4)[1] end
  assert_mean(first, 2.5, 15 / 12)
end

function TestDistribution:test_fills()
  tensor.manual_seed(4)
  local x = tensor.zeros(300, 300)
  lu.assertTrue(rawequal(x:normal_(3, 0.5), x))
  assert_mean(x, 3, 0.25)
  assert_mean((x - 3):square(), 0.25, 0.125)
  assert_mean(x:uniform_(-1, 3), 1, 16 / 12)
  assert_mean(x:exponential_(2), 0.5, 0.25)
  assert_mean(x:bernoulli_(0.25), 0.25, 0.1875)
  assert_mean(tensor.bernoulli(tensor.full({90000}, 0.75)), 0.75, 0.1875)
  local k = tensor.zeros(90000, {dtype = "int32"}):bernoulli_(0.5)
  equals(k.dtype, "int32")
  assert_mean(k, 0.5, 0.25)
  assert_mean(tensor.normal(tensor.full({90000}, 2), 3), 2, 9)
  equals(tensor.normal(5, 0, {2}):totable(), {5, 5})
end

function TestDistribution:test_choices_by_weight()
  tensor.manual_seed(5)
  local weights = tensor{1, 0, 3}
  local drawn = weights:multinomial(90000, true)
  equals({drawn.dtype, drawn:amin():item(), drawn:amax():item()}, {"int64", 1, 3})
  assert_mean(drawn:eq(3), 0.75, 0.1875)
  lu.assertFalse(drawn:eq(2):any():item())
  local firsts = weights:expand(20000, 3):multinomial(2)
  assert_mean(firsts:select(2, 1):eq(3), 0.75, 0.1875)
  lu.assertTrue((firsts:sort(2)) == tensor({1, 3}, {dtype = "int64"}):expand(20000, 2))
  raises("multinomial: cannot draw 4 of 3 without replacement", weights.multinomial, weights, 4)
end

TestGenerators = {}

function TestGenerators:test_streams_of_their_own()
  local g = tensor.generator(42)
  local own = {tensor.randn(5, {generator = g}), tensor.rand(3, {generator = g})}
  tensor.manual_seed(42)
  lu.assertTrue(own[1] == tensor.randn(5))
  lu.assertTrue(own[2] == tensor.rand(3))
  local before = tensor.get_rng_state()
  tensor.randn(7, {generator = g})
  equals(tensor.get_rng_state(), before)
  equals(g:initial_seed(), 42)
end

function TestGenerators:test_state()
  local g = tensor.generator(1)
  tensor.rand(3, {generator = g, dtype = "float64"})
  local state = g:get_state()
  local x = tensor.randn(4, {generator = g})
  lu.assertTrue(rawequal(g:set_state(state), g))
  lu.assertTrue(x == tensor.randn(4, {generator = g}))
  lu.assertTrue(tensor.randperm(9, {generator = tensor.generator(6)}) ==
                tensor.randperm(9, {generator = tensor.generator(6)}))
  tensor.set_rng_state(state)
  lu.assertTrue(x == tensor.randn(4))
  local last = tensor.generator(3):get_state()
  equals(tensor.generator(0):manual_seed(3):get_state(), last)
end

function TestGenerators:test_refused()
  local g = tensor.generator(1)
  raises("rand: generator must be a generator, not 1", tensor.rand, 2, {generator = 1})
  raises("zeros: unknown option 'generator': dtype or device", tensor.zeros, 2, {generator = g})
  raises("set_state: argument 2 is not the state of a generator", g.set_state, g, "x")
  raises("rand: wants a floating-point dtype, not int64", tensor.rand, 2, {dtype = "int64"})
  raises("rand_like: rand: wants a floating-point dtype, not int8", tensor.rand_like,
         tensor.ones(2), {dtype = "int8"})
  lu.assertErrorMsgContains("rand", tensor.compile(function()
    return tensor.rand(2, {generator = g})
  end))
end

os.exit(lu.LuaUnit.run())
