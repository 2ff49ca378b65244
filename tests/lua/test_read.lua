-- What waits: item, totable, printing, .. , comparisons, wait; and is_ready, which does not.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

local huge, nan = math.huge, 0 / 0

TestValues = {}

function TestValues:test_item()
  equals(tensor(2.5):item(), 2.5)
  equals(tensor{2.5}:item(), 2.5)
  equals(tensor{{{3}}}:item(), 3)
  equals(math.type(tensor(2):item()), "float")
  equals(tensor({0.1}, {dtype = "float64"}):item(), 0.1)
  equals(tensor{1, 2, 3}[2]:item(), 2)
  raises("item: wants one element, not a tensor of size 2x3", tensor.item, tensor.ones(2, 3))
  raises("item: wants one element, not a tensor of size 0", tensor.item, tensor{})
end

function TestValues:test_totable()
  equals(tensor(2):totable(), 2)
  equals(tensor{}:totable(), {})
  equals(tensor.zeros(2, 0, 3):totable(), {{}, {}})
  equals(tensor{{1, 2}, {3, 4}}:t():totable(), {{1, 3}, {2, 4}})
  equals(tensor.arange(6):reshape(1, 2, 3):totable(), {{{1, 2, 3}, {4, 5, 6}}})
  equals(tensor.arange(10)[{{2, 9, 3}}]:totable(), {2, 5, 8})
  raises("totable: 2 arguments are too many: at most 1", tensor.totable, tensor{1}, 1)
end

TestText = {}

function TestText:test_print()
  local _, out = support.run_script [[
    local x, y = tensor.ones(1, 2), tensor.ones(1, 2)
    local z = x * y + 2
    print(z)]]
  equals(out, "tensor([[3., 3.]])\n")
end

function TestText:test_tostring()
  equals(tostring(tensor{1.5, -2}), "tensor([ 1.5000, -2.0000])")
  equals(tensor{1}:tostring(), "tensor([1.])")
  equals(tostring(tensor(1)), "tensor(1.)")
  equals(tostring(tensor{}), "tensor([])")
  equals(tostring(tensor.zeros(2, 0)), "tensor([], size=(2, 0))")
  equals(tostring(tensor({1}, {dtype = "float64"})), "tensor([1.], dtype='float64')")
  equals(tostring(tensor{nan, huge, -huge}), "tensor([nan, inf, -inf])")
  equals(tostring(tensor.arange(2000)), "tensor([1.0000e+00, 2.0000e+00, 3.0000e+00,  ..., " ..
         "1.9980e+03, 1.9990e+03,\n        2.0000e+03])")
  equals(tostring(tensor{{1, 2}, {3, 4}}:t()), "tensor([[1., 3.],\n        [2., 4.]])")
end

function TestText:test_large_is_summarised_at_once()
  local x = tensor.zeros(1000, 1000)
  local text = tostring(x)
  equals(select(2, text:gsub("\n", "")), 6)
  lu.assertStrContains(text, "...")
end

function TestText:test_concat()
  equals("x = " .. tensor{1}, "x = tensor([1.])")
  equals(tensor{1} .. "!", "tensor([1.])!")
  equals(tensor{1} .. tensor{2}, "tensor([1.])tensor([2.])")
  equals(1 .. tensor{2}, "1tensor([2.])")
end

TestComparison = {}

function TestComparison:test_equal()
  local x = tensor{1, 2}
  equals(x == tensor{1, 2}, true)
  equals(x == tensor{1, 3}, false)
  equals(x ~= tensor{1, 3}, true)
  equals(x == x, true)
  equals(x == tensor{{1, 2}}, false)
  equals(x == tensor{1}, false)
  equals(x == tensor({1, 2}, {dtype = "float64"}), false)
  equals(x == {1, 2}, false)
  equals(x == nil, false)
  equals(x == 1, false)
  equals(tensor{} == tensor{}, true)
  equals(tensor.zeros(2, 0) == tensor.zeros(0, 2), false)
  equals(tensor(1) == tensor(1), true)
  equals(tensor(1) == tensor{1}, false)
  equals(tensor{0.0} == tensor{-0.0}, true)
  equals(tensor{nan} == tensor{nan}, false)
  equals(tensor{huge} == tensor{huge}, true)
  equals(tensor{huge} == tensor{-huge}, false)
  equals(x:equal(tensor{1, 2}), true)
  equals(tensor{{1, 2}, {3, 4}}:t() == tensor{{1, 3}, {2, 4}}, true)
  equals(tensor{1, 2, 3, 4}[{{1, 4, 2}}] == tensor{1, 3}, true)
end

function TestComparison:test_equal_of_large()
  local n = 300001
  local x = tensor.arange(n)
  for _, place in ipairs {1, 65536, 150000, n} do
    local y = x:clone()
    equals(x == y, true)
    y[place] = -1
    equals(x == y, false)
  end
end

-- nan is not equal to itself, also not when both are one tensor.
function TestComparison:test_nan_and_itself()
  local x = tensor{nan}
  equals(x:equal(x), false)
end

function TestComparison:test_equal_wants_tensors()
  lu.assertFalse(pcall(tensor.equal), "equal of nothing")
  lu.assertFalse(pcall(tensor.equal, tensor{1}), "equal of one tensor")
  lu.assertFalse(pcall(tensor.equal, tensor{1}, tensor{1}, 3), "equal of three values")
end

function TestComparison:test_order()
  local two, three = tensor(2), tensor{3}
  equals({two < three, three < two, two <= tensor{{2}}, two > three}, {true, false, true, false})
  equals({two < 3, 3 < two, 2 <= two, two >= 2.5}, {true, false, true, false})
  equals({tensor(nan) < 1, tensor(nan) >= 1}, {false, false})
  raises("<: wants one element, not a tensor of size 2: element by element it is :lt() or :le()",
         function() return tensor{1, 2} < 3 end)
  lu.assertStrContains(select(2, pcall(function() return 3 <= tensor{1, 2} end)),
                       "<=: wants one element, not a tensor of size 2")
  lu.assertStrContains(select(2, pcall(function() return tensor(1) < "2" end)), "<: ")
end

function TestComparison:test_allclose()
  local x = tensor{1, 100}
  equals(x:allclose(tensor{1 + 1e-6, 100}), true)
  equals(x:allclose(tensor{1 + 1e-3, 100}), false)
  equals(x:allclose(tensor{1.05, 104}, 0.06), true)
  equals(x:allclose(tensor{1.05, 104}, 0.03), false)
  equals(x:allclose(tensor{1.5, 100.5}, 0, 0.6), true)
  equals(x:allclose(tensor{1.5, 100.5}, 0, 0.4), false)
  equals(x:allclose(tensor{1.5, 100.5}, nil, 0.6), true)
  equals(tensor{1e-9}:allclose(tensor{0}), true)
  equals(tensor{1e-7}:allclose(tensor{0}), false)
  equals(tensor{huge}:allclose(tensor{huge}), true)
  equals(tensor{huge}:allclose(tensor{-huge}), false)
  equals(tensor{huge}:allclose(tensor{1}), false)
  equals(tensor{1}:allclose(tensor{huge}), false)
  equals(tensor{nan}:allclose(tensor{nan}), false)
  equals(tensor{nan}:allclose(tensor{1}), false)
  equals(tensor.ones(2, 3):allclose(tensor{1, 1, 1}), true)
  equals(tensor.ones(2, 3):allclose(tensor({1, 1, 1}, {dtype = "float64"})), true)
  equals(tensor{}:allclose(tensor{}), true)
  raises("allclose: cannot broadcast 2 with 3: sizes 2 and 3 differ in dimension 1",
         tensor.allclose, x, tensor{1, 2, 3})
  raises("allclose: argument 2 must be a tensor, not number", tensor.allclose, x, 1)
  raises("allclose: argument 3 must be a number, not string", tensor.allclose, x, x, "1")
  raises("allclose: 5 arguments are too many: at most 4", tensor.allclose, x, x, 0, 0, 0)
end

-- The tolerance is measured by the second operand.
function TestComparison:test_allclose_is_not_symmetric()
  equals(tensor{0}:allclose(tensor{1}, 1, 0), true)
  equals(tensor{1}:allclose(tensor{0}, 1, 0), false)
end

TestWaiting = {}

function TestWaiting:test_wait()
  local x = tensor.ones(300, 300)
  local y = x:mm(x)
  lu.assertTrue(rawequal(y:wait(), y))
  equals(y:is_ready(), true)
  equals(y[{1, 1}]:item(), 300)
end

function TestWaiting:test_is_ready_in_the_end()
  local x = tensor.ones(400, 400)
  local y = x
  for _ = 1, 4 do y = y:mm(x) / 400 end
  local start = os.time()
  while not y:is_ready() do
    lu.assertTrue(os.time() - start < 30, "not ready after 30 seconds")
  end
  equals(y[{400, 400}]:item(), 1)
  equals(tensor{1, 2}:is_ready(), true)
  if support.synchronous then equals((x + 1):is_ready(), true) end
end

function TestWaiting:test_sync()
  local x = tensor.ones(200, 200)
  local y = x:mm(x)
  equals(select("#", sync()), 0)
  equals(y:is_ready(), true)
  sync "cpu"
  raises("sync: there is no device 'gpu' here, only 'cpu'", sync, "gpu")
  raises("sync: 2 arguments are too many: at most 1", sync, "cpu", 1)
end

-- Reading from a coroutine, a finalizer and a hook-like callback is reading all the same.
function TestWaiting:test_anywhere()
  local got = {}
  coroutine.wrap(function() got[1] = (tensor{1} + 1):item() end)()
  setmetatable({}, {__gc = function() got[2] = (tensor{2} + 1):item() end})
  collectgarbage()
  table.sort({2, 1}, function(a, b) return (tensor(a) - b):item() < 0 end)
  equals(got, {2, 3})
end

TestFinalizers = {}

-- Making a Lua object may run a finalizer, and that may close what is being worked on.
function TestFinalizers:test_closing_an_operand()
  for _, use in ipairs {
    function(x) return x * 2 end, function(x) return x:exp() end, function(x) return x:sum() end,
    function(x) return x:mm(x) end, function(x) return x:totable() end,
    function(x) return x:clone() end, function(x) return x == x end, function(x) return x:t() end,
    function(x) return tostring(x) end, function(x) return x:add_(x:t()) end,
  } do
    for _ = 1, 50 do
      local x = tensor.ones(40, 40)
      for _ = 1, 20 do
        setmetatable({}, {__gc = function()
          do local gone <close> = x end
          sync()
          tensor.empty_cache()
        end})
      end
      collectgarbage "step"
      pcall(use, x)
      for _ = 1, 3 do pcall(use, x) end
    end
  end
  lu.assertEquals((tensor.ones(3) + 1):sum():item(), 6)
end

os.exit(lu.LuaUnit.run())
