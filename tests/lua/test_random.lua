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

os.exit(lu.LuaUnit.run())
