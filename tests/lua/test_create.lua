-- Making tensors: from tables, of one value, of computed values; sizes and options.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

local huge, nan = math.huge, 0 / 0

TestFromTables = {}

function TestFromTables:test_nested()
  local x = tensor{{1, 2, 3}, {4, 5, 6}}
  equals(x.shape, {2, 3})
  equals(x.dtype, "float32")
  equals(x.device, "cpu")
  equals(x:totable(), {{1, 2, 3}, {4, 5, 6}})
  equals(tensor{1.5, -2}:totable(), {1.5, -2})
  equals(tensor{{{{{{{{7}}}}}}}}.shape, {1, 1, 1, 1, 1, 1, 1, 1})
  equals(tensor({{1}, {2}}, {dtype = "float64"}).dtype, "float64")
  equals(tensor({{1}, {2}}, {}).dtype, "float32")
end

function TestFromTables:test_zero_dimensional()
  local x = tensor(3)
  equals(x.shape, {})
  equals(x.ndim, 0)
  equals(x:item(), 3)
  equals(x:totable(), 3)
  equals(tensor(0.1, {dtype = "float64"}):item(), 0.1)
end

function TestFromTables:test_empty()
  equals(tensor{}.shape, {0})
  equals(tensor{{}, {}, {}}.shape, {3, 0})
  equals(tensor({}, {dtype = "float64"}).dtype, "float64")
  equals(tensor{}:totable(), {})
  equals(tensor{{}, {}}:totable(), {{}, {}})
end

function TestFromTables:test_values_are_rounded_to_the_dtype()
  local values = {0.1, 1 / 3, 1e300, -1e300, 1e-300, huge, -huge, nan, -0.0, 1e-45, 16777217,
                  3.4028235677973366e38, math.maxinteger, math.mininteger}
  local rounded, doubles = {}, {}
  for i, x in ipairs(values) do
    rounded[i], doubles[i] = support.round("float32", x), x + -0.0 -- keeps the sign
  end
  support.assert_values(tensor(values), {#values}, rounded)
  support.assert_values(tensor(values, {dtype = "float64"}), {#values}, doubles)
end

function TestFromTables:test_the_table_may_change_afterwards()
  local values = {1, 2, 3}
  local x = tensor(values)
  values[1] = 9
  equals(x:totable(), {1, 2, 3})
end

function TestFromTables:test_many()
  local values = {}
  for i = 1, 100000 do values[i] = i end
  equals(tensor(values):totable(), values)
end

function TestFromTables:test_ragged()
  raises("tensor: element [2] is ragged: 1 elements, and 2 in those before", tensor, {{1, 2}, {3}})
  raises("tensor: element [2] is ragged: 1 elements, and 0 in those before", tensor, {{}, {1}})
  raises("tensor: element [1][2] is ragged: 2 elements, and 1 in those before", tensor,
         {{{1}, {2, 3}}})
  raises("tensor: element [2] is a number where the first ones are tables", tensor, {{1}, 2})
  raises("tensor: element [2] is a table, not a number", tensor, {1, {2}})
end

function TestFromTables:test_not_numbers()
  raises("tensor: element [1] is a string, not a number", tensor, {"1"})
  raises("tensor: element [2] is a nil, not a number", tensor, {1, nil, 3})
  raises("tensor: element [2][1] is a boolean, not a number", tensor, {{1}, {true}})
  raises("tensor: argument 1 must be a number or a table of numbers, not string", tensor, "1")
  raises("tensor: argument 1 must be a number or a table of numbers, not nil", tensor, nil)
  raises("tensor: argument 1 must be a number or a table of numbers, not missing", tensor)
  raises("tensor: 2 arguments are too many: at most 1", tensor, {1}, {2})
  raises("tensor: 2 arguments are too many: at most 1", tensor, 1, 2)
end

function TestFromTables:test_too_deep()
  raises("tensor: tables nested deeper than 8 dimensions", tensor, {{{{{{{{{1}}}}}}}}})
  local circle = {}
  circle[1] = circle
  raises("tensor: tables nested deeper than 8 dimensions", tensor, circle)
end

TestOfOneValue = {}

function TestOfOneValue:test_values()
  equals(tensor.zeros(2, 3):totable(), {{0, 0, 0}, {0, 0, 0}})
  equals(tensor.ones(2):totable(), {1, 1})
  equals(tensor.full({2}, 0.5):totable(), {0.5, 0.5})
  equals(tensor.full(2, 7):totable(), {7, 7})
  equals(tensor.full({}, 7):item(), 7)
  equals(tensor.full({1}, 0.1):item(), support.round("float32", 0.1))
  equals(tensor.full({1}, 0.1, {dtype = "float64"}):item(), 0.1)
  equals(tensor.full({2}, huge):totable(), {huge, huge})
  lu.assertIsNaN(tensor.full({1}, nan):item())
  lu.assertIsMinusZero(tensor.full({1}, -0.0):item())
end

function TestOfOneValue:test_eye()
  equals(tensor.eye(3):totable(), {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}})
  equals(tensor.eye(2, 3):totable(), {{1, 0, 0}, {0, 1, 0}})
  equals(tensor.eye(3, 1):totable(), {{1}, {0}, {0}})
  equals(tensor.eye(0).shape, {0, 0})
  equals(tensor.eye(0, 2).shape, {0, 2})
  equals(tensor.eye(2, {dtype = "float64"}).dtype, "float64")
  equals(tensor.eye(300):sum():item(), 300)
  equals(tensor.eye(300):sum(1):min():item(), 1)
  raises("eye: 3 arguments are too many: at most 2", tensor.eye, 1, 2, 3)
  raises("eye: argument 1 must be an integer, not missing", tensor.eye)
  raises("eye: size -1 is negative", tensor.eye, -1)
end

function TestOfOneValue:test_large()
  for _, name in ipairs {"zeros", "ones"} do
    local x = tensor[name](700, 301)
    equals(x:max():item(), name == "ones" and 1 or 0)
    equals(x:sum():item(), name == "ones" and 700 * 301 or 0)
  end
end

TestSizes = {}

function TestSizes:test_numbers_or_a_table()
  for _, name in ipairs {"zeros", "ones", "rand", "randn"} do
    local f = tensor[name]
    equals(f(2, 3).shape, {2, 3})
    equals(f({2, 3}).shape, {2, 3})
    equals(f(4).shape, {4})
    equals(f({4}).shape, {4})
    equals(f({}).shape, {})
    equals(f(0).shape, {0})
    equals(f(2, 0, 3).shape, {2, 0, 3})
    equals(f(2.0, 3.0).shape, {2, 3})
    equals(math.type(f(2.0).shape[1]), "integer")
    equals(f(1, 1, 1, 1, 1, 1, 1, 1).ndim, 8)
    equals(f(2, {dtype = "float64"}).dtype, "float64")
    equals(f({2}, {dtype = "float64"}).dtype, "float64")
    equals(f({}, {dtype = "float64"}).dtype, "float64")
    equals(f({}, {dtype = "float64"}).shape, {})
    equals(f(2, {}).shape, {2})
  end
end

function TestSizes:test_wrong()
  for _, name in ipairs {"zeros", "ones", "rand", "randn"} do
    local f = tensor[name]
    raises(name .. ": size -1 is negative", f, -1)
    raises(name .. ": size -3 is negative", f, {2, -3})
    raises(name .. ": size 1.5 is not an integer", f, 1.5)
    raises(name .. ": size 3 is not an integer", f, "3")
    raises(name .. ": size true is not an integer", f, {2, true})
    raises(name .. ": a size is missing: numbers or a table", f)
    raises(name .. ": too many arguments after the size", f, {2}, 3)
    raises(name .. ": 9 dimensions are too many: at most 8", f, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    raises(name .. ": 9 dimensions are too many: at most 8", f, {1, 1, 1, 1, 1, 1, 1, 1, 1})
    raises(name .. ": a tensor of 4294967296x4294967296 elements is too large", f, 1 << 32, 1 << 32)
    raises(name .. ": a tensor of 4611686018427387904 elements is too large", f, 1 << 62)
    local message = select(2, pcall(f, nan))
    lu.assertStrMatches(message, ".*" .. name .. ": size %-?nan is not an integer")
    raises(name .. ": size inf is not an integer", f, huge)
    raises(name .. ": size 1e+300 is not an integer", f, 1e300)
  end
end

TestOptions = {}

function TestOptions:test_device()
  equals(tensor.zeros(2, {device = "cpu"}).device, "cpu")
  equals(tensor({1}, {device = "cpu", dtype = "float64"}).dtype, "float64")
  raises("zeros: there is no device 'gpu' here, only 'cpu'", tensor.zeros, 2, {device = "gpu"})
  raises("zeros: there is no device '1' here, only 'cpu'", tensor.zeros, 2, {device = 1})
end

function TestOptions:test_dtype()
  equals(tensor.float32, "float32")
  equals(tensor.float64, "float64")
  for _, dtype in ipairs {tensor.float32, tensor.float64} do
    local options = {dtype = dtype}
    equals(tensor({1}, options).dtype, dtype)
    equals(tensor.zeros(1, options).dtype, dtype)
    equals(tensor.ones(1, options).dtype, dtype)
    equals(tensor.full({1}, 1, options).dtype, dtype)
    equals(tensor.eye(1, options).dtype, dtype)
    equals(tensor.arange(3, options).dtype, dtype)
    equals(tensor.rand(1, options).dtype, dtype)
    equals(tensor.randn(1, options).dtype, dtype)
  end
  raises("zeros: 'float' is not a dtype: 'float32' or 'float64'", tensor.zeros, 2,
         {dtype = "float"})
  raises("tensor: 'nil' is not a dtype: 'float32' or 'float64'", function()
    return tensor({1}, setmetatable({dtype = "nil"}, {}))
  end)
end

function TestOptions:test_unknown()
  for _, name in ipairs {"zeros", "ones", "rand", "randn", "eye", "arange"} do
    raises(name .. ": unknown option 'type': dtype or device", tensor[name], 2, {type = "float64"})
  end
  raises("full: unknown option 'type': dtype or device", tensor.full, 2, 1, {type = "float64"})
  raises("tensor: unknown option 'dtyp': dtype or device", tensor, {1}, {dtyp = "float64"})
end

-- Options among the sizes or values would be lost without a word.
function TestOptions:test_options_inside_the_size()
  for _, f in ipairs {tensor.zeros, tensor.rand, tensor} do
    local ok, x = pcall(f, {2, 3, dtype = "float64"})
    lu.assertTrue(not ok or x.dtype == "float64", "an option within the table is ignored")
  end
end

TestArange = {}

function TestArange:test_counts_as_for_does()
  local cases = {{3}, {1, 3}, {0, 9, 2}, {5, 1, -1}, {5, 1}, {0}, {-2}, {1, 2, 0.25}, {0.5, 4.5},
                 {10, 0, -3}, {1, 1, 5}, {1, 1, -5}, {2.5}}
  for _, case in ipairs(cases) do
    local first, last, step = 1, case[1], case[3] or 1
    if #case > 1 then first, last = case[1], case[2] end
    local expected = {}
    for x = first, last, step do expected[#expected + 1] = x + 0.0 end
    support.assert_values(tensor.arange(table.unpack(case)), {#expected}, expected,
                          "arange " .. support.shape_text(case))
  end
end

function TestArange:test_large_and_exact()
  local n = 200003
  local x = tensor.arange(n, {dtype = "float64"})
  equals(x:sum():item(), n * (n + 1) / 2)
  equals(x[-1]:item(), n)
  equals(tensor.arange(0, 1, 1 / 3, {dtype = "float64"}):totable(), {0, 1 / 3, 2 / 3, 1})
end

function TestArange:test_wrong()
  raises("arange: cannot count from 1.0 to 5.0 in steps of 0.0", tensor.arange, 1, 5, 0)
  raises("arange: cannot count from 1.0 to inf in steps of 1.0", tensor.arange, huge)
  raises("arange: argument 1 must be a number, not missing", tensor.arange)
  raises("arange: argument 2 must be a number, not string", tensor.arange, 1, "5")
  raises("arange: 4 arguments are too many: at most 3", tensor.arange, 1, 2, 3, 4)
  raises("arange: a tensor of 9223372036854775807 elements is too large", tensor.arange, 1e30)
end

TestLibrary = {}

function TestLibrary:test_names_in_scope()
  equals(require "tensor", tensor)
  equals(sync, tensor.sync)
  equals(benchmark, tensor.benchmark)
  lu.assertStrMatches(tensor.VERSION, "%d+%.%d+%.%d+[%w.+-]*")
end

-- A function that takes a tensor first is a method too.
function TestLibrary:test_methods_are_functions()
  local x = tensor{{1, 2}, {3, 4}}
  for name, f in pairs(tensor) do
    local method = x[name]
    if type(f) == "function" and type(method) == "function" then
      equals(method == f or debug.getinfo(f, "S").what == "C", true, name)
    end
  end
  equals(x:exp() == tensor.exp(x), true)
  equals(x:mm(x) == tensor.mm(x, x), true)
  equals(tensor.numel(x), 4)
end

function TestLibrary:test_protected()
  equals(getmetatable(tensor{1}), "tensor")
  equals(type(tensor{1}), "userdata")
  lu.assertFalse(pcall(setmetatable, tensor{1}, {}))
end

os.exit(lu.LuaUnit.run())
