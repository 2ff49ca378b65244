-- Matrix products against three loops on small integers, which every dtype and every order of
-- summation gives exactly; large ones against NumPy, and on other numbers of threads.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

local DTYPES = {"float32", "float64"}

-- n x k times k x m, of flat lists.
local function multiply(n, k, m, a, b)
  local c = {}
  for i = 0, n - 1 do
    for j = 1, m do
      local sum = 0.0
      for l = 0, k - 1 do sum = sum + a[i * k + l + 1] * b[l * m + j] end
      c[i * m + j] = sum
    end
  end
  return c
end

TestSmall = {}

function TestSmall:test_all_layouts()
  local sizes = support.slow and {0, 1, 3} or {0, 1, 2, 5}
  for _, dtype in ipairs(DTYPES) do
    for _, n in ipairs(sizes) do
      for _, k in ipairs(sizes) do
        for _, m in ipairs(sizes) do
          local a, b = support.random_integers(n * k, -9, 9), support.random_integers(k * m, -9, 9)
          local expected = multiply(n, k, m, a, b)
          for _, x in ipairs(support.layouts({n, k}, a, dtype)) do
            for _, y in ipairs(support.layouts({k, m}, b, dtype)) do
              local what = ("%dx%dx%d %s %s %s"):format(n, k, m, dtype, x[1], y[1])
              support.assert_values(x[2]:mm(y[2]), {n, m}, expected, "mm " .. what, 0)
              support.assert_values(x[2]:matmul(y[2]), {n, m}, expected, "matmul " .. what, 0)
            end
          end
        end
      end
    end
  end
end

function TestSmall:test_vectors()
  for _, dtype in ipairs(DTYPES) do
    for _, n in ipairs {0, 1, 4} do
      for _, k in ipairs {0, 1, 3, 7} do
        local a, v = support.random_integers(n * k, -9, 9), support.random_integers(k, -9, 9)
        local w = support.random_integers(k, -9, 9)
        for _, y in ipairs(support.layouts({k}, v, dtype)) do
          for _, x in ipairs(support.layouts({n, k}, a, dtype)) do
            local what = ("%dx%d %s %s %s"):format(n, k, dtype, x[1], y[1])
            local expected = multiply(n, k, 1, a, v)
            support.assert_values(x[2]:mv(y[2]), {n}, expected, "mv " .. what, 0)
            support.assert_values(x[2]:matmul(y[2]), {n}, expected, "matmul " .. what, 0)
            support.assert_values(y[2]:matmul(x[2]:t()), {n}, expected, "vector first " .. what, 0)
          end
          for _, x in ipairs(support.layouts({k}, w, dtype)) do
            local expected = multiply(1, k, 1, w, v)
            support.assert_values(x[2]:dot(y[2]), {}, expected, "dot", 0)
            support.assert_values(x[2]:matmul(y[2]), {}, expected, "matmul of vectors", 0)
          end
        end
      end
    end
  end
end

function TestSmall:test_no_inner_elements_give_zeros()
  equals(tensor.zeros(2, 0):mm(tensor.zeros(0, 3)):totable(), {{0, 0, 0}, {0, 0, 0}})
  equals(tensor.zeros(2, 0):mv(tensor.zeros(0)):totable(), {0, 0})
  equals(tensor.zeros(0):dot(tensor.zeros(0)):item(), 0)
  equals(tensor.zeros(0, 5):mm(tensor.zeros(5, 0)).shape, {0, 0})
  -- Also into a buffer that has been used: a zero is not a leftover.
  for _ = 1, 5 do
    local used = tensor.full({64, 64}, 7)
    sync()
    used = nil -- luacheck: ignore
    collectgarbage()
    equals(tensor.zeros(64, 0):mm(tensor.zeros(0, 64)):max():item(), 0)
  end
end

function TestSmall:test_a_matrix_with_itself()
  local x = tensor.arange(9):reshape(3, 3)
  local a = support.flat(x)
  local turned = support.flat(x:t())
  support.assert_values(x:mm(x), {3, 3}, multiply(3, 3, 3, a, a), "mm", 0)
  support.assert_values(x:mm(x:t()), {3, 3}, multiply(3, 3, 3, a, turned), "mm", 0)
  support.assert_values(x:t():mm(x), {3, 3}, multiply(3, 3, 3, turned, a), "mm", 0)
  equals(x[1]:dot(x[1]):item(), 14)
  equals(x:t()[1]:dot(x[3]):item(), 7 + 32 + 63)
end

function TestSmall:test_special_values()
  local inf, nan = math.huge, 0 / 0
  local x = tensor{{inf, 0}, {nan, 1}}
  support.assert_values(x:mm(tensor.eye(2)), {2, 2}, {inf, nan, nan, nan}, "mm", 0)
  support.assert_values(tensor{{inf}}:mm(tensor{{1, -2}}), {1, 2}, {inf, -inf})
  lu.assertIsNaN(tensor{nan}:dot(tensor{0}):item())
end

function TestSmall:test_chains()
  local x = tensor{{1, 1}, {1, 0}}
  local power = tensor.eye(2)
  for _ = 1, 30 do power = power:mm(x) end
  equals(power[{1, 2}]:item(), 832040)
end

-- A step on a dimension of one element says nothing about memory.
function TestSmall:test_huge_step_of_one_element()
  local x = tensor.arange(6):reshape(2, 3)[{{1, 1, 1 << 40}}]
  equals(x:mm(tensor.ones(3, 1)):totable(), {{6}})
end

TestErrors = {}

function TestErrors:test_shapes()
  raises("mm: cannot multiply 2x3 by 4x5: inner sizes 3 and 4 differ", tensor.mm,
         tensor.ones(2, 3), tensor.ones(4, 5))
  raises("mv: cannot multiply 2x3 by 2: inner sizes 3 and 2 differ", tensor.mv, tensor.ones(2, 3),
         tensor.ones(2))
  raises("dot: cannot multiply 2 by 3: inner sizes 2 and 3 differ", tensor.dot, tensor.ones(2),
         tensor.ones(3))
  raises("matmul: cannot multiply 2 by 3x2: inner sizes 2 and 3 differ", tensor.matmul,
         tensor.ones(2), tensor.ones(3, 2))
  raises("mm: wants a matrix and a matrix, not sizes 2 and 2x2", tensor.mm, tensor.ones(2),
         tensor.ones(2, 2))
  raises("mm: wants a matrix and a matrix, not sizes () and 2x2x2", tensor.mm, tensor(1),
         tensor.ones(2, 2, 2))
  raises("mv: wants a matrix and a vector, not sizes 2x2 and 2x2", tensor.mv, tensor.ones(2, 2),
         tensor.ones(2, 2))
  raises("dot: wants a vector and a vector, not sizes 2x1 and 2", tensor.dot, tensor.ones(2, 1),
         tensor.ones(2))
  raises("matmul: wants at least one dimension, not 0 and 1", tensor.matmul, tensor(1),
         tensor.ones(1))
end

function TestErrors:test_dtypes_and_arguments()
  raises("mm: operands are float32 and float64: convert one with :to()", tensor.mm,
         tensor.ones(2, 2), tensor.ones(2, 2, {dtype = "float64"}))
  raises("mm: argument 2 must be a tensor, not number", tensor.mm, tensor.ones(2, 2), 2)
  raises("mm: argument 2 must be a tensor, not missing", tensor.mm, tensor.ones(2, 2))
  raises("mm: 3 arguments are too many: at most 2", tensor.mm, tensor.ones(2, 2), tensor.ones(2, 2),
         1)
end

function TestErrors:test_too_large_for_blas()
  local wide = tensor.zeros(0, 1 << 31)
  local ok, message = pcall(tensor.mm, wide, tensor.zeros(1 << 31, 0))
  if ok then
    equals(message.shape, {0, 0})
  else
    lu.assertStrContains(message, "mm: size 2147483648 is too large: at most 2147483647")
  end
end

TestLarge = {}

-- Integers from -3 to 3 that differ from place to place, without a table.
local function integers(n, m, factor, dtype)
  local x = tensor.arange(0, n * m - 1, {dtype = "float64"})
  return ((x * factor % 1009) % 7 - 3):reshape(n, m):to(dtype)
end

-- One random column more checks a product of any size: (A B) v = A (B v).
local function assert_product(a, b, c)
  local v = integers(b:size(2), 1, 13, "float64")
  local expected = a:to("float64"):mm(b:to("float64"):mm(v))
  lu.assertTrue(c:to("float64"):mm(v) == expected)
end

function TestLarge:test_panels()
  local shapes = support.slow and {{70, 300, 90}}
    or {{700, 300, 900}, {1, 5000, 3}, {3000, 1, 800}, {33, 2000, 1001}, {2000, 65, 17}}
  for _, dtype in ipairs(DTYPES) do
    for _, shape in ipairs(shapes) do
      local n, k, m = table.unpack(shape)
      local a, b = integers(n, k, 17, dtype), integers(k, m, 29, dtype)
      local product = a:mm(b)
      assert_product(a, b, product)
      lu.assertTrue(a:t():clone():t():mm(b) == product)
      lu.assertTrue(a:mm(b:t():clone():t()) == product)
      lu.assertTrue(b:t():mm(a:t()) == product:t())
    end
  end
end

function TestLarge:test_against_numpy()
  local n, k, m = 70, 31, 90
  local a, b = support.random_data(n * k, -1, 1), support.random_data(k * m, -1, 1)
  local both = table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
  local expected = support.numpy(("a = np.array(data[:%d]).reshape(%d, %d)\n" ..
    "b = np.array(data[%d:]).reshape(%d, %d)\nresult = (a @ b).ravel()"):format(n * k, n, k, n * k,
    k, m), both)
  lu.skipIf(not expected, "needs NumPy")
  for _, dtype in ipairs(DTYPES) do
    local product = support.tensor({n, k}, a, dtype):mm(support.tensor({k, m}, b, dtype))
    local tolerance = dtype == "float32" and 1e-5 or 1e-13
    lu.assertTrue(product:allclose(support.tensor({n, m}, expected, "float64"), 0, tolerance))
  end
end

function TestLarge:test_same_bits_on_any_number_of_threads()
  local n = support.slow and 100 or 513
  tensor.manual_seed(7)
  local a, b, v = tensor.randn(n, n), tensor.randn(n, n), tensor.randn(n)
  local first
  support.each_thread_count(function()
    local results = {a:mm(b), a:t():mm(b), a:mm(b:t()), a:mv(v), a:t():mv(v), v:dot(a[2]),
                     a[{{1, 3}}]:mm(b), a:mm(b[{{}, {1, 3}}]),
                     a:to("float64"):mm(b:to("float64"))}
    first = first or results
    for i = 1, #results do lu.assertTrue(results[i] == first[i], i) end
  end)
end

TestOtherDtypes = {}

function TestOtherDtypes:test_integers_are_exact()
  local big = 1 << 53
  local a = tensor({{big + 1, 1}, {-3, 7}}, {dtype = "int64"})
  equals(a:mm(a):totable(), {{(big + 1) * (big + 1) - 3, big + 1 + 7},
                             {-3 * (big + 1) - 21, -3 + 49}})
  equals(a:mv(a[2]):totable(), {-3 * (big + 1) + 7, 9 + 49})
  equals(a:t()[1]:dot(a[1]):item(), (big + 1) * (big + 1) - 3)
  local small = tensor({{100, 100}, {1, 2}}, {dtype = "int8"})
  local product = small:mm(small:t()) -- wraps around
  equals({product.dtype, product:totable()}, {"int8", {{20000 - 78 * 256, 300 - 256}, {44, 5}}})
  equals(tensor.zeros(3, 0, {dtype = "int32"}):mm(tensor.zeros(0, 2, {dtype = "int32"})):totable(),
         {{0, 0}, {0, 0}, {0, 0}})
end

function TestOtherDtypes:test_integers_in_batches()
  local a = tensor.arange(24, {dtype = "int16"}):reshape(2, 3, 4)
  local product = a:matmul(a:transpose(2, 3))
  equals(product.dtype, "int16")
  lu.assertTrue(product == a:to("float32"):matmul(a:to("float32"):transpose(2, 3)):to("int16"))
end

function TestOtherDtypes:test_halves_are_computed_in_float32()
  for _, dtype in ipairs {"float16", "bfloat16"} do
    local a, b = tensor.randn(33, 40):to(dtype), tensor.randn(40, 17):to(dtype)
    lu.assertTrue(a:mm(b) == a:to("float32"):mm(b:to("float32")):to(dtype), dtype)
  end
end

function TestOtherDtypes:test_refused()
  local truth = tensor.ones(2, 2):gt(0)
  raises("mm: wants numbers, not bool: convert with :to()", truth.mm, truth, truth)
  raises("mm: operands are int32 and int64: convert one with :to()", tensor.mm,
         tensor.ones(2, 2, {dtype = "int32"}), tensor.ones(2, 2, {dtype = "int64"}))
end

os.exit(lu.LuaUnit.run())
