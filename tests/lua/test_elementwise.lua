-- Every element-wise operator against formulas of its own in plain Lua: values, special values,
-- broadcasting, layouts, dtypes, and that a value depends on nothing but its operands.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises
local round = support.round

local huge, nan = math.huge, 0 / 0
local DTYPES = {"float32", "float64"}

-- ---- the oracle ----

-- Lambert's continued fraction near 0, where the other formula loses digits.
local function tanh(x)
  local magnitude = math.abs(x)
  if magnitude < 1 then
    local fraction = 39
    for odd = 37, 1, -2 do fraction = odd + x * x / fraction end
    return x / fraction
  end
  local e = math.exp(-2 * magnitude)
  return (x < 0 and -1 or 1) * (1 - e) / (1 + e)
end

local function mod(x, y, dtype)
  local r = math.fmod(x * 1.0, y * 1.0)
  if r ~= 0 and (r < 0) ~= (y < 0) then r = round(dtype, r + y) end
  return r
end

local function choose(x, y, pick)
  if x ~= x or y ~= y then return nan end
  return pick(x, y)
end

local UNARY = {
  neg = function(x) return -x end,
  abs = function(x) return x ~= x and x or x > 0 and x or x == 0 and 0.0 or -x end,
  exp = math.exp,
  log = function(x) return math.log(x) end,
  sqrt = math.sqrt,
  tanh = tanh,
  sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
  relu = function(x) return x < 0 and 0.0 or x end,
}

local BINARY = {
  add = function(x, y) return x + y end,
  sub = function(x, y) return x - y end,
  mul = function(x, y) return x * y end,
  div = function(x, y) return x / y end,
  floor_divide = function(x, y, dtype)
    local q = round(dtype, x / y)
    return (q ~= q or q == huge or q == -huge or q == 0) and q or math.floor(q) + 0.0
  end,
  remainder = mod,
  pow = function(x, y) return x ^ y end,
  maximum = function(x, y) return choose(x, y, function(a, b) return a > b and a or b end) end,
  minimum = function(x, y) return choose(x, y, function(a, b) return a < b and a or b end) end,
}

-- Those that may differ from the correctly rounded value, and by how much; others are exact.
local ULPS = {exp = 4, log = 4, tanh = 4, sigmoid = 4, pow = 4}

-- Where operands are drawn; elsewhere from -10 to 10.
local DOMAIN = {exp = {-20, 20}, log = {0, 100}, sqrt = {0, 100}, sigmoid = {-20, 20}, pow = {0, 5}}

local function draw(name, count, dtype)
  local domain = DOMAIN[name] or {-10, 10}
  return support.random_data(count, domain[1], domain[2], dtype)
end

local function expected_of(name, dtype, shape, read_x, read_y)
  local f, list = UNARY[name] or BINARY[name], {}
  for place = 0, support.numel(shape) - 1 do
    list[place + 1] = round(dtype, f(read_x(place), read_y and read_y(place), dtype))
  end
  return list
end

-- ---- the operators: those that also work in place ----

local NOT_ELEMENTWISE = {copy = true, fill = true, zero = true}

local names = {}
for name, f in pairs(tensor) do
  local base = type(f) == "function" and name:match "^(.*%l)_$"
  if base and not NOT_ELEMENTWISE[base] then names[#names + 1] = base end
end
table.sort(names)

-- Those that give floats for floats; of them, those with a formula above.  (All are compared with
-- NumPy in test_conformance.lua.)
local real_names, known_names, is_binary = {}, {}, {}
for _, name in ipairs(names) do
  is_binary[name] = not pcall(tensor[name], tensor({1}, {dtype = "int64"}))
  local ok, result = pcall(tensor[name], tensor{1}, is_binary[name] and tensor{1} or nil)
  if ok and result.dtype == "float32" then
    real_names[#real_names + 1] = name
    if UNARY[name] or BINARY[name] then known_names[#known_names + 1] = name end
  end
end
assert(#real_names > 40 and #known_names >= 17)

-- Whether two tensors hold the same values, nan being the same as nan.
local function same_values(a, b)
  return a:eq(b):logical_or(a:isnan():logical_and(b:isnan())):all():item()
end

TestValues = {}

function TestValues:test_unary_layouts()
  for name, f in pairs(UNARY) do
    for _, dtype in ipairs(DTYPES) do
      for _, shape in ipairs {{}, {1}, {7}, {3, 5}, {2, 3, 4}, {0}, {3, 0}, {2, 1, 3, 2}} do
        local data = draw(name, support.numel(shape), dtype)
        local expected = expected_of(name, dtype, shape, function(place) return data[place + 1] end)
        for _, layout in ipairs(support.layouts(shape, data, dtype)) do
          local what = ("%s %s %s"):format(name, dtype, layout[1])
          support.assert_values(tensor[name](layout[2]), shape, expected, what, ULPS[name])
          support.assert_values(layout[2], shape, data, what .. ": operand")
        end
      end
    end
    equals(type(f), "function")
  end
end

function TestValues:test_large()
  local count = support.slow and 2000 or 40000
  for _, name in ipairs(known_names) do
    for _, dtype in ipairs(DTYPES) do
      local x, y = draw(name, count, dtype), draw(name, count, dtype)
      local arguments = {support.tensor({count}, x, dtype)}
      if BINARY[name] then arguments[2] = support.tensor({count}, y, dtype) end
      local expected = expected_of(name, dtype, {count}, function(place) return x[place + 1] end,
                                   function(place) return y[place + 1] end)
      support.assert_values(tensor[name](table.unpack(arguments)), {count}, expected,
                            name .. " " .. dtype, ULPS[name])
    end
  end
end

-- The library's functions of C and NumPy's in extended precision are independent of each other.
function TestValues:test_against_numpy()
  local code = {exp = "np.exp(x)", log = "np.log(x)", tanh = "np.tanh(x)",
                sigmoid = "1 / (1 + np.exp(-x))", pow = "x ** y"}
  local count = support.slow and 1000 or 20000
  for name, formula in pairs(code) do
    for _, dtype in ipairs(DTYPES) do
      local x, y = draw(name, count, dtype), draw(name, count, dtype)
      local both = table.move(y, 1, count, count + 1, table.move(x, 1, count, 1, {}))
      local expected = support.numpy(("x, y = np.array(data).reshape(2, -1).astype(np.longdouble)\n"
        .. "result = (%s).astype(np.%s)"):format(formula, dtype), both)
      lu.skipIf(not expected, "needs NumPy")
      local arguments = {support.tensor({count}, x, dtype)}
      if BINARY[name] then arguments[2] = support.tensor({count}, y, dtype) end
      support.assert_values(tensor[name](table.unpack(arguments)), {count}, expected,
                            name .. " " .. dtype, ULPS[name])
    end
  end
end

-- Wider than the domain of the tests: all magnitudes.
function TestValues:test_all_magnitudes()
  for _, name in ipairs(known_names) do
    for _, dtype in ipairs(DTYPES) do
      local x, y = {}, {}
      local span = dtype == "float32" and 120 or 1000
      for i = 1, 1000 do
        x[i] = round(dtype, (math.random() - 0.5) * 2.0 ^ math.random(-span, span))
        y[i] = round(dtype, (math.random() - 0.5) * 2.0 ^ math.random(-span, span))
      end
      if name == "pow" then
        for i = 1, #x do
          x[i] = math.abs(x[i])
          y[i] = round(dtype, (math.random() - 0.5) * 40)
        end
      elseif name == "exp" or name == "sigmoid" then
        for i = 1, #x do x[i] = round(dtype, (math.random() - 0.5) * 1.4 * span / 2) end
      end
      local arguments = {support.tensor({#x}, x, dtype)}
      if BINARY[name] then arguments[2] = support.tensor({#x}, y, dtype) end
      local expected = expected_of(name, dtype, {#x}, function(place) return x[place + 1] end,
                                   function(place) return y[place + 1] end)
      support.assert_values(tensor[name](table.unpack(arguments)), {#x}, expected,
                            name .. " " .. dtype, ULPS[name])
    end
  end
end

function TestValues:test_special_values()
  for _, dtype in ipairs(DTYPES) do
    local least = dtype == "float32" and 2.0 ^ -149 or 2.0 ^ -1074
    local most = dtype == "float32" and 3.4028234663852886e38 or 1.7976931348623157e308
    local special = {nan, huge, -huge, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, least, -least,
                     least * 1000, most, -most, 1e-30}
    local n = #special
    for _, name in ipairs(known_names) do
      local x = support.tensor({n}, special, dtype)
      local what = name .. " of special values, " .. dtype
      if UNARY[name] then
        local expected = expected_of(name, dtype, {n}, function(i)
          return round(dtype, special[i + 1])
        end)
        support.assert_values(tensor[name](x), {n}, expected, what, ULPS[name])
      else
        local row, column = x:reshape(1, n), x:reshape(n, 1)
        local expected = expected_of(name, dtype, {n, n},
          function(i) return round(dtype, special[i // n + 1]) end,
          function(i) return round(dtype, special[i % n + 1]) end)
        -- The sign of a zero that maximum and minimum choose from two is not promised.
        local ulps = ULPS[name] or (name == "maximum" or name == "minimum") and 0 or nil
        support.assert_values(tensor[name](column, row), {n, n}, expected, what, ulps)
      end
    end
  end
end

TestPosition = {}

-- f of prefixes of all lengths, of slices and of single elements gives the bits of f of it all.
local function assert_position_free(name, whole, parts)
  local expected = support.flat(whole)
  for length = 1, #expected do
    local prefix = support.flat(parts({1, length}))
    for i = 1, length do
      if prefix[i] ~= expected[i] and prefix[i] == prefix[i] then
        error(("%s: element %d of %d is %a in a prefix of %d, %a in all"):format(name, i, #expected,
          prefix[i], length, expected[i]))
      end
    end
  end
  for _, range in ipairs {{2, 66}, {5, 60}, {1, 67, 2}, {4, 67, 3}, {17, 64}} do
    local part = support.flat(parts(range))
    for i = 1, #part do
      local wanted = expected[range[1] + (i - 1) * (range[3] or 1)]
      lu.assertTrue(part[i] == wanted or wanted ~= wanted, name .. " of a slice")
    end
  end
end

function TestPosition:test_value_depends_on_operands_only()
  for _, name in ipairs(real_names) do
    for _, dtype in ipairs(DTYPES) do
      local f, x = tensor[name], support.tensor({67}, draw(name, 67, dtype), dtype)
      local y = support.tensor({67}, draw(name, 67, dtype), dtype)
      local what = name .. " " .. dtype
      if not is_binary[name] then
        assert_position_free(what, f(x), function(range) return f(x[{range}]) end)
        local values = f(x):totable()
        for i = 1, 67 do
          local value = f(x[i]):item()
          lu.assertTrue(value == values[i] or value ~= value and values[i] ~= values[i], what)
        end
      else
        assert_position_free(what, f(x, y), function(range) return f(x[{range}], y[{range}]) end)
        for _, number in ipairs(support.under_gc and {2} or {2, 0.5, 3, 1.1}) do
          local same = tensor.full({67}, number, {dtype = dtype})
          assert_position_free(what, f(x, same), function(range) return f(x[{range}], number) end)
          assert_position_free(what, f(same, x), function(range) return f(number, x[{range}]) end)
          assert_position_free(what, f(x, same), function(range) return f(x[{range}], same[1]) end)
        end
      end
    end
  end
end

function TestPosition:test_large_and_small_agree()
  local n = support.under_gc and 5001 or 50001
  for _, name in ipairs(real_names) do
    local x = support.tensor({n}, draw(name, n, "float32"))
    local y = is_binary[name] and support.tensor({n}, draw(name, n, "float32")) or nil
    local all = tensor[name](x, y)
    for _, first in ipairs {1, 1023, n // 3, n * 4 // 5, n - 2} do
      local range = {{first, first + 2}}
      lu.assertTrue(same_values(tensor[name](x[range], y and y[range]), all[range]), name)
    end
  end
end

function TestPosition:test_threads_do_not_matter()
  local x, y = tensor.rand(300, 1001), tensor.rand(1001)
  for _, name in ipairs(real_names) do
    local first
    support.each_thread_count(function()
      local result = tensor[name](x:t(), is_binary[name] and y:reshape(1001, 1) or nil)
      first = first or result
      lu.assertTrue(same_values(result, first), name)
    end)
  end
end

TestBroadcast = {}

-- A shape that broadcasts with `shape`: some dimensions left away, some of size 1.
local function partner(shape)
  local from, other = math.random(1, #shape + 1), {}
  for d = from, #shape do other[#other + 1] = math.random() < 0.4 and 1 or shape[d] end
  return other
end

function TestBroadcast:test_random_shapes()
  local arithmetic = {"add", "sub", "mul", "div", "maximum"}
  for round_number = 1, support.slow and 60 or 600 do
    local shape = {}
    for d = 1, math.random(0, 4) do shape[d] = ({0, 1, 1, 2, 3, 5})[math.random(6)] end
    local a, b = partner(shape), partner(shape)
    local dtype = DTYPES[math.random(2)]
    local x = support.random_data(support.numel(a), -10, 10, dtype)
    local y = support.random_data(support.numel(b), -10, 10, dtype)
    local result_shape = support.broadcast(a, b)
    local name = arithmetic[math.random(#arithmetic)]
    local expected = expected_of(name, dtype, result_shape, support.reader(result_shape, a, x),
                                 support.reader(result_shape, b, y))
    support.assert_values(
      tensor[name](support.any_layout(a, x, dtype), support.any_layout(b, y, dtype)), result_shape,
      expected, ("%d: %s of %s and %s"):format(round_number, name, support.shape_text(a),
                                               support.shape_text(b)))
  end
end

function TestBroadcast:test_eight_dimensions()
  local x = tensor.arange(256):reshape(2, 2, 2, 2, 2, 2, 2, 2)
  local y = x:transpose(1, 8):transpose(2, 7):transpose(3, 6)
  equals((x + y):sum():item(), 256 * 257)
  equals((x + y)[2][1][1][1][1][1][1][1]:item(), 129 + 2)
end

function TestBroadcast:test_does_not_fit()
  local x = tensor.ones(2, 3)
  raises("add: cannot broadcast 2x3 with 2: sizes 3 and 2 differ in dimension 2", tensor.add, x,
         tensor.ones(2))
  raises("mul: cannot broadcast 2x3 with 2x4: sizes 3 and 4 differ in dimension 2", tensor.mul, x,
         tensor.ones(2, 4))
  raises("pow: cannot broadcast 2x3 with 4x5x3: sizes 2 and 5 differ in dimension 2", tensor.pow,
         x, tensor.ones(4, 5, 3))
end

function TestBroadcast:test_product_of_sizes_overflows()
  local x = tensor.zeros(1 << 31, 1, 0)
  raises("add: a tensor of 2147483648x4294967296x0 elements is too large", tensor.add, x,
         tensor.zeros(1, 1 << 32, 0))
end

TestDtypes = {}

function TestDtypes:test_rules()
  local single, double = tensor{1.5}, tensor({0.1}, {dtype = "float64"})
  for _, name in ipairs(real_names) do
    local f = tensor[name]
    if is_binary[name] then
      equals(f(single, single).dtype, "float32", name)
      equals(f(double, double).dtype, "float64", name)
      equals(f(single, double).dtype, "float64", name)
      equals(f(double, single).dtype, "float64", name)
      equals(f(single, double[1]).dtype, "float32", name) -- has no dimensions, so no say
      equals(f(single[1], double[1]).dtype, "float64", name)
      equals(f(single, 0.1).dtype, "float32", name)
      equals(f(0.1, single).dtype, "float32", name)
      equals(f(double, 1).dtype, "float64", name)
    else
      equals(f(single).dtype, "float32", name)
      equals(f(double).dtype, "float64", name)
    end
  end
end

-- A float32 operand is widened exactly; the operation is then one of float64.
function TestDtypes:test_mixtures_compute_in_float64()
  local x, y = support.random_data(100, 1, 5), support.random_data(100, 1, 5, "float64")
  for _, name in ipairs(real_names) do
    if is_binary[name] then
      local single, double = support.tensor({100}, x), support.tensor({100}, y, "float64")
      local wide = support.tensor({100}, x, "float64")
      local f = tensor[name]
      lu.assertTrue(same_values(f(single, double), f(wide, double)), name)
      lu.assertTrue(same_values(f(double, single), f(double, wide)), name)
      lu.assertTrue(same_values(f(single:reshape(100, 1), double),
                                f(wide:reshape(100, 1), double)), name)
    end
  end
end

function TestDtypes:test_numbers_are_rounded_to_the_tensor()
  equals((tensor{1} + 0.1):item(), round("float32", 1 + round("float32", 0.1)))
  equals((tensor({1}, {dtype = "float64"}) + 0.1):item(), 1.1)
  equals((tensor{0} + 1e300):item(), huge)
  equals((tensor{0} + math.maxinteger):item(), 2.0 ^ 63)
  equals((3 - tensor{1}):item(), 2)
end

TestMetamethods = {}

function TestMetamethods:test_signs()
  local x, y = tensor{{7, -7}, {2, 9}}, tensor{2, 3}
  local pairs_of = {
    {x + y, x:add(y)}, {x - y, x:sub(y)}, {x * y, x:mul(y)}, {x / y, x:div(y)},
    {x // y, x:floor_divide(y)}, {x % y, x:remainder(y)}, {x ^ y, x:pow(y)}, {-x, x:neg()},
    {x + 2, x:add(2)}, {2 + x, tensor.add(2, x)}, {2 - x, tensor.sub(2, x)},
    {2 / x, tensor.div(2, x)}, {2 // x, tensor.floor_divide(2, x)},
    {2 % x, tensor.remainder(2, x)}, {2 ^ x, tensor.pow(2, x)}, {x ^ 2, x:pow(2)},
  }
  for i, pair in ipairs(pairs_of) do lu.assertTrue(pair[1] == pair[2], i) end
end

function TestMetamethods:test_wrong_operands()
  local x = tensor{1}
  local yes = tensor{true, false} -- PyTorch refuses these, too
  raises("neg: bools have no such result: use logical_not, or convert with :to()",
         function() return -yes end)
  raises("sub: bools have no such result: use logical_xor, or convert with :to()",
         function() return yes - yes end)
  raises("sub_: bools have no such result: use logical_xor, or convert with :to()", yes.sub_, yes,
         true)
  equals(tostring(yes - 1), "tensor([ 0, -1])")
  raises("add: operand 2 must be a tensor or a number, not nil", function() return x + nil end)
  raises("add: operand 2 must be a tensor or a number, not string", function() return x + "1" end)
  raises("add: operand 1 must be a tensor or a number, not string", function() return "1" + x end)
  raises("mul: operand 1 must be a tensor or a number, not table", function() return {} * x end)
  raises("pow: operand 2 must be a tensor or a number, not missing", tensor.pow, x)
  raises("div: one of the operands must be a tensor", tensor.div, 1, 2)
  raises("exp: argument 1 must be a tensor, not number", tensor.exp, 1)
end

-- More arguments than are read are a mistake that should be told.
function TestMetamethods:test_too_many_arguments()
  local x = tensor{1}
  for _, name in ipairs(names) do
    local ok, message = pcall(tensor[name], x, is_binary[name] and x or 2, 3)
    lu.assertFalse(ok, name .. " ignores an argument")
    lu.assertStrContains(message, name .. ": ")
  end
end

TestTiles = {}

-- Transposed operands are read tile by tile (test_layouts.lua has all layouts).
function TestTiles:test_transposed_operands()
  for _, size in ipairs {{96, 160}, {160, 96}, {30, 120}, {97, 101}, {16, 1000}, {4, 8}} do
    local rows, columns = size[1], size[2]
    local x, y = tensor.arange(rows * columns):reshape(rows, columns), tensor.rand(columns, rows)
    local xs, ys = x:totable(), y:totable()
    local sums, copy = (x + y:t()):totable(), x:t():clone():totable()
    local both = (x:t() * y):totable()
    x:t():add_(y)
    local added = x:totable()
    for i = 1, rows do
      for j = 1, columns do
        local sum = string.unpack("f", string.pack("f", xs[i][j] + ys[j][i]))
        if sums[i][j] ~= sum or added[i][j] ~= sum or copy[j][i] ~= xs[i][j] or
          both[j][i] ~= string.unpack("f", string.pack("f", xs[i][j] * ys[j][i])) then
          lu.fail(("%dx%d: element %d, %d"):format(rows, columns, i, j))
        end
      end
    end
  end
end

os.exit(lu.LuaUnit.run())
