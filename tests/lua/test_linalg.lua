-- tensor.linalg against NumPy where a result is unique, and by what it must satisfy where it is not
-- (Q R = A); what is refused at the call, and what fails when it runs.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises
local linalg = tensor.linalg

local DTYPES = {"float32", "float64"}
local TOLERANCE = {float32 = 3e-5, float64 = 1e-12}
local INF, NAN = math.huge, 0 / 0

-- Asks that two tensors agree, elements of the size of 1 within a few roundings.
local function close(got, expected, what, factor)
  equals(got.shape, expected.shape, what)
  local tolerance = TOLERANCE[got.dtype] * (factor or 1)
  if not tensor.allclose(got:to("float64"), expected:to("float64"), tolerance, tolerance) then
    error(("%s: %s is not %s"):format(what, got, expected), 2)
  end
end

local function join(a, b) return table.move(b, 1, #b, #a + 1, {table.unpack(a)}) end

-- Matrices of a batch that are far from singular.
local function regular(batch, n, dtype)
  local shape = join(batch, {n, n})
  local data = support.random_data(support.numel(shape), -1, 1, dtype)
  return support.any_layout(shape, data, dtype) + tensor.eye(n, {dtype = dtype}) * 2.5
end

local function random(batch, n, m, dtype)
  local shape = join(batch, {n, m})
  return support.any_layout(shape, support.random_data(support.numel(shape), -1, 1, dtype), dtype)
end

local function turn(x) return x:transpose(-2, -1) end
local function symmetric(x) return x + turn(x) end
local function identity(batch, n, dtype)
  return tensor.zeros(join(batch, {n, n}), {dtype = dtype}) + tensor.eye(n, {dtype = dtype})
end

-- S (..., k) as the diagonal of n x m matrices.
local function diagonal(s, n, m)
  local k = s.shape[s.ndim]
  local rows = tensor.eye(n, k, {dtype = s.dtype})
  return (rows * s:reshape(join({table.unpack(s.shape, 1, s.ndim - 1)}, {1, k})))
    :matmul(tensor.eye(k, m, {dtype = s.dtype}))
end

local BATCHES = support.under_gc and {{}, {2}} or {{}, {3}, {2, 1, 2}}
local SIZES = {{1, 1}, {4, 4}, {5, 3}, {2, 6}, {7, 1}, {1, 3}}

local function each_square(f)
  for _, dtype in ipairs(DTYPES) do
    for _, batch in ipairs(BATCHES) do
      for _, n in ipairs {1, 2, 5} do f(batch, n, dtype) end
    end
  end
end

local function each_size(f)
  for _, dtype in ipairs(DTYPES) do
    for _, batch in ipairs(BATCHES) do
      for _, size in ipairs(SIZES) do f(batch, size[1], size[2], dtype) end
    end
  end
end

TestSquare = {}

function TestSquare:test_inv()
  each_square(function(batch, n, dtype)
    local a = regular(batch, n, dtype)
    close(linalg.inv(a):matmul(a), identity(batch, n, dtype), "inv")
  end)
end

function TestSquare:test_solve()
  each_square(function(batch, n, dtype)
    local a = regular(batch, n, dtype)
    for _, k in ipairs {0, 1, 3} do
      local b = random(batch, n, k, dtype)
      close(a:matmul(linalg.solve(a, b)), b, "solve")
      local left = turn(b)
      close(linalg.solve(a, left, {left = false}):matmul(a), left, "solve with left = false")
    end
    local vectors = random(batch, n, 1, dtype):reshape(join(batch, {n}))
    local x = linalg.solve(a, vectors)
    equals(x.shape, vectors.shape)
    close(a:matmul(x:reshape(join(batch, {n, 1}))):reshape(vectors.shape), vectors, "solve vectors")
  end)
end

function TestSquare:test_solve_broadcasts()
  local a, one = regular({2, 1}, 3, "float64"), regular({}, 3, "float64")
  local b, vector = random({4}, 3, 2, "float64"), random({}, 3, 1, "float64"):reshape(3)
  close(a:matmul(linalg.solve(a, b)), b + tensor.zeros(2, 4, 3, 2, {dtype = "float64"}), "solve")
  close(one:matmul(linalg.solve(one, b)), b, "one matrix")
  local x = linalg.solve(a, vector)
  close(a:matmul(x:reshape(2, 1, 3, 1)):reshape(2, 1, 3), vector + x * 0, "vector")
end

function TestSquare:test_cholesky()
  each_square(function(batch, n, dtype)
    local a = random(batch, n, n, dtype)
    local positive = a:matmul(turn(a)) + tensor.eye(n, {dtype = dtype})
    local lower = linalg.cholesky(positive)
    close(lower:matmul(turn(lower)), positive, "cholesky")
    local upper = linalg.cholesky(positive, {upper = true})
    close(upper, turn(lower), "upper")
    lu.assertTrue(linalg.cholesky(positive, true) == upper)
  end)
  -- The other triangle is not read.
  local only = linalg.cholesky(tensor{{4, NAN}, {2, 2}})
  equals(only:totable(), {{2, 0}, {1, 1}})
  equals(linalg.cholesky(tensor{{4, 2}, {NAN, 2}}, {upper = true}):totable(), {{2, 1}, {0, 1}})
end

function TestSquare:test_eigh()
  each_square(function(batch, n, dtype)
    local a = symmetric(random(batch, n, n, dtype))
    local values, vectors = linalg.eigh(a)
    close(a:matmul(vectors), vectors:matmul(diagonal(values, n, n)), "eigh")
    close(turn(vectors):matmul(vectors), identity(batch, n, dtype), "orthogonal")
    lu.assertTrue(vectors:is_contiguous())
    close(linalg.eigvalsh(a), values, "eigvalsh")
  end)
end

function TestSquare:test_eigh_reads_one_triangle()
  local lower, upper = tensor{{2, NAN}, {1, 2}}, tensor{{2, 1}, {NAN, 2}}
  close(linalg.eigvalsh(lower), tensor{1, 3}, "lower")
  close(linalg.eigvalsh(upper, "U"), tensor{1, 3}, "upper")
  close((linalg.eigh(upper, {UPLO = "U"})), tensor{1, 3}, "upper")
end

function TestSquare:test_eig()
  each_square(function(batch, n, dtype)
    local a = random(batch, n, n, dtype)
    local real, imaginary, v, w = linalg.eig(a)
    local re, im = diagonal(real, n, n), diagonal(imaginary, n, n)
    close(a:matmul(v), v:matmul(re) - w:matmul(im), "real part", 10)
    close(a:matmul(w), v:matmul(im) + w:matmul(re), "imaginary part", 10)
    close((v * v + w * w):sum(-2), tensor.ones(real.shape, {dtype = dtype}), "of length 1")
    local values_real, values_imaginary = linalg.eigvals(a)
    close(values_real:sum(), real:sum(), "eigvals")
    close((values_imaginary ^ 2):sum(), (imaginary ^ 2):sum(), "eigvals", 10)
  end)
end

function TestSquare:test_known_eigenvalues()
  local real, imaginary, v, w = linalg.eig(tensor{{0, -1}, {1, 0}})
  equals({real:totable(), imaginary:totable()}, {{0, 0}, {1, -1}})
  close(w[{{}, 1}], w[{{}, 2}] * -1, "conjugate")
  close(v[{{}, 1}], v[{{}, 2}], "conjugate")
end

TestAnySize = {}

function TestAnySize:test_qr()
  each_size(function(batch, n, m, dtype)
    local a, k = random(batch, n, m, dtype), math.min(n, m)
    for _, mode in ipairs {"reduced", "complete"} do
      local q, r = linalg.qr(a, mode)
      local lines = mode == "reduced" and k or n
      equals({q.shape, r.shape}, {join(batch, {n, lines}), join(batch, {lines, m})})
      close(q:matmul(r), a, "qr " .. mode)
      close(turn(q):matmul(q), identity(batch, lines, dtype), "orthogonal")
      local below = tensor(0)
      for i = 2, lines do
        for j = 1, math.min(i - 1, m) do
          below = below + r:reshape(-1, lines, m)[{{}, i, j}]:abs():sum():to("float32")
        end
      end
      equals(below:item(), 0)
    end
    local nothing, r = linalg.qr(a, {mode = "r"})
    equals(nothing.shape, {0})
    lu.assertTrue(r == select(2, linalg.qr(a)))
  end)
end

function TestAnySize:test_svd()
  each_size(function(batch, n, m, dtype)
    local a, k = random(batch, n, m, dtype), math.min(n, m)
    local u, s, vh = linalg.svd(a)
    equals(u.shape, join(batch, {n, n}))
    equals(s.shape, join(batch, {k}))
    equals(vh.shape, join(batch, {m, m}))
    close(u:matmul(diagonal(s, n, m)):matmul(vh), a, "full svd")
    close(turn(u):matmul(u), identity(batch, n, dtype), "u")
    close(vh:matmul(turn(vh)), identity(batch, m, dtype), "vh")
    u, s, vh = linalg.svd(a, {full_matrices = false})
    equals(u.shape, join(batch, {n, k}))
    equals(s.shape, join(batch, {k}))
    equals(vh.shape, join(batch, {k, m}))
    close((u * s:reshape(join(batch, {1, k}))):matmul(vh), a, "svd")
    close(turn(u):matmul(u), identity(batch, k, dtype), "u")
    close(linalg.svdvals(a), s, "svdvals")
  end)
end

function TestAnySize:test_pinv()
  each_size(function(batch, n, m, dtype)
    local a = random(batch, n, m, dtype)
    local p = linalg.pinv(a)
    equals(p.shape, join(batch, {m, n}))
    close(a:matmul(p):matmul(a), a, "a p a", 10)
    close(turn(a:matmul(p)), a:matmul(p), "a p symmetric", 30)
    close(turn(p:matmul(a)), p:matmul(a), "p a symmetric", 30)
  end)
end

-- Singular values 8, 4, 2, 1, as exactly as a product gives them.
local function graded(dtype)
  local q = linalg.qr(random({}, 5, 4, dtype))
  local p = linalg.qr(random({}, 6, 4, dtype))
  return (q * tensor({8, 4, 2, 1}, {dtype = dtype})):matmul(turn(p))
end

function TestAnySize:test_ranks_and_tolerances()
  for _, dtype in ipairs(DTYPES) do
    local a = graded(dtype)
    equals(linalg.matrix_rank(a):item(), 4)
    equals(linalg.matrix_rank(a, {atol = 3}):item(), 2)
    equals(linalg.matrix_rank(a, {rtol = 0.2}):item(), 3)
    equals(linalg.matrix_rank(a, {atol = 5, rtol = 0.2}):item(), 1)
    equals(linalg.matrix_rank(a, 9):item(), 0)
    equals(linalg.matrix_rank(linalg.pinv(a, {atol = 3})):item(), 2)
    equals(linalg.matrix_rank(linalg.pinv(a, 0.2)):item(), 3)
    equals(linalg.pinv(a, {atol = 9}):abs():max():item(), 0)
    equals(select(3, linalg.lstsq(a, tensor.ones(5, 1, {dtype = dtype}))):item(), 4)
    equals(select(3, linalg.lstsq(a, tensor.ones(5, 1, {dtype = dtype}), {rcond = 0.2})):item(), 3)
  end
  local stack = tensor{{{1, 2}, {2, 4}}, {{1, 0}, {0, 1}}, {{0, 0}, {0, 0}}}
  equals(linalg.matrix_rank(stack):to("float32"):totable(), {1, 2, 0})
end

function TestAnySize:test_lstsq()
  each_size(function(batch, n, m, dtype)
    local a = random(batch, n, m, dtype)
    for _, k in ipairs {0, 1, 3} do
      local b = random(batch, n, k, dtype)
      local x, residuals, rank, s = linalg.lstsq(a, b)
      equals(x.shape, join(batch, {m, k}))
      equals(rank.shape, batch)
      equals(s.shape, join(batch, {math.min(n, m)}))
      close(x, linalg.pinv(a):matmul(b), "lstsq", 100)
      close(s, linalg.svdvals(a), "singular values")
      local rest = a:matmul(x) - b
      if n > m then
        close(residuals, (rest * rest):sum(-2), "residuals")
      else
        equals(residuals.shape, {0})
        close(rest, b * 0, "solved", 10)
      end
    end
  end)
  local x, residuals = linalg.lstsq(tensor{{1, 0}, {0, 1}, {0, 0}}, tensor{1, 2, 3})
  close(x, tensor{1, 2}, "vector")
  close(residuals, tensor(9), "vector's residual")
end

TestNumPy = {}

-- Results that are unique, of one stack of matrices.
function TestNumPy:test_unique_results()
  local count = 2 * 3 * 4 * 4
  local data = support.random_data(count, -1, 1)
  local result = support.numpy([[
a = np.array(data).reshape(2, 3, 4, 4)
s = a @ a.swapaxes(-1, -2) + np.eye(4)
b = a[..., :3]
w = np.linalg.eigvals(a)
sign, log = np.linalg.slogdet(a)
parts = [np.linalg.inv(a), np.linalg.det(a), sign, log, np.linalg.cholesky(s),
         np.linalg.solve(a, b), np.linalg.svd(a)[1], np.linalg.svd(b)[1], np.linalg.pinv(b),
         np.linalg.eigh(s)[0], abs(np.linalg.qr(b)[0]), abs(np.linalg.qr(b)[1]),
         np.linalg.lstsq(b[0, 0], a[0, 0], rcond=None)[0],
         np.linalg.lstsq(b[0, 0], a[0, 0], rcond=None)[1],
         w.real.sum(-1), (abs(w) ** 2).sum(-1)]
result = np.concatenate([p.ravel() for p in parts])]], data)
  lu.skipIf(not result, "needs NumPy")
  for _, dtype in ipairs(DTYPES) do
    local a = support.any_layout({2, 3, 4, 4}, data, dtype)
    local s = a:matmul(turn(a)) + tensor.eye(4, {dtype = dtype})
    local b = a[{{}, {}, {}, {1, 3}}]
    local sign, log = linalg.slogdet(a)
    local q, r = linalg.qr(b)
    local _, values = linalg.svd(a)
    local x, residuals = linalg.lstsq(b[{1, 1}], a[{1, 1}])
    local real, imaginary = linalg.eigvals(a)
    local at = 0
    for i, got in ipairs {linalg.inv(a), linalg.det(a), sign, log, linalg.cholesky(s),
                          linalg.solve(a, b), values, linalg.svdvals(b), linalg.pinv(b),
                          linalg.eigvalsh(s), q:abs(), r:abs(), x, residuals, real:sum(-1),
                          (real ^ 2 + imaginary ^ 2):sum(-1)} do
      local expected = table.move(result, at + 1, at + got:numel(), 1, {})
      close(got, support.tensor(got.shape, expected, "float64"), "part " .. i, 100)
      at = at + got:numel()
    end
    equals(at, #result)
  end
end

function TestNumPy:test_norms()
  local data = support.random_data(24, -1, 1)
  data[5] = 0.0
  local orders = {{"None"}, {"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}, {"-1", -1}, {"-2.5", -2.5},
                  {"0.5", 0.5}, {"np.inf", INF}, {"-np.inf", -INF}}
  local matrix = {{"'fro'", "fro"}, {"'nuc'", "nuc"}, {"1", 1}, {"-1", -1}, {"2", 2}, {"-2", -2},
                  {"np.inf", INF}, {"-np.inf", -INF}}
  local code = {"x = np.array(data).reshape(2, 3, 4)", "n = np.linalg.norm", "result = [n(x)]",
                "def add(y): result.extend(np.ravel(y))"}
  for _, order in ipairs(orders) do
    for axis = 0, 2 do code[#code + 1] = ("add(n(x, %s, %d))"):format(order[1], axis) end
  end
  for _, order in ipairs(matrix) do
    for _, axes in ipairs {"(1, 2)", "(2, 0)", "(-3, -2)"} do
      code[#code + 1] = ("add(n(x, %s, %s))"):format(order[1], axes)
    end
    code[#code + 1] = ("add(n(x[0], %s))"):format(order[1])
  end
  local result = support.numpy(table.concat(code, "\n"), data)
  lu.skipIf(not result, "needs NumPy")
  for _, dtype in ipairs(DTYPES) do
    local at = 0
    local x = support.any_layout({2, 3, 4}, data, dtype)
    local function compare(got, what)
      local expected = table.move(result, at + 1, at + got:numel(), 1, {})
      close(got, support.tensor(got.shape, expected, "float64"), what, 10)
      at = at + got:numel()
    end
    compare(linalg.norm(x), "all elements")
    for _, order in ipairs(orders) do
      for dim = 1, 3 do
        compare(linalg.norm(x, order[2], dim), "vector " .. order[1])
        local kept = linalg.norm(x, {ord = order[2], dim = dim, keepdim = true})
        equals(kept.shape[dim], 1)
        equals(kept:numel() * x.shape[dim], x:numel())
      end
    end
    for _, order in ipairs(matrix) do
      for _, dims in ipairs {{2, 3}, {3, 1}, {-3, -2}} do
        compare(linalg.norm(x, order[2], dims), "matrix " .. order[1])
      end
      compare(linalg.norm(x[1], order[2]), "matrix " .. order[1])
      equals(linalg.norm(x, order[2], {3, 1}, true).shape, {1, 3, 1})
    end
    equals(at, #result)
    equals(linalg.norm(x, nil, nil, true).shape, {1, 1, 1})
  end
  local tiny = tensor({0, 5e-324, -5e-324, INF}, {dtype = "float64"})
  equals(linalg.norm(tiny, 0):item(), 3)
  equals(linalg.norm(tensor{0, 1e-45, 3e38}, 0):item(), 2)
end

TestEmpty = {}

function TestEmpty:test_no_elements()
  local none, wide, tall = tensor.zeros(0, 0), tensor.zeros(0, 3), tensor.zeros(3, 0)
  local stack = tensor.zeros(2, 0, 0)
  equals(linalg.inv(none).shape, {0, 0})
  equals(linalg.cholesky(stack).shape, {2, 0, 0})
  equals(linalg.solve(none, tensor.zeros(0, 2)).shape, {0, 2})
  equals(linalg.solve(none, tensor.zeros(0)).shape, {0})
  equals(linalg.det(stack):totable(), {1, 1})
  local sign, log = linalg.slogdet(stack)
  equals({sign:totable(), log:totable()}, {{1, 1}, {0, 0}})
  for _, x in ipairs {wide, tall} do
    local n, m = x.shape[1], x.shape[2]
    local u, s, vh = linalg.svd(x)
    lu.assertTrue(u == tensor.eye(n) and vh == tensor.eye(m))
    equals(s.shape, {0})
    local q, r = linalg.qr(x, "complete")
    lu.assertTrue(q == tensor.eye(n))
    equals(r.shape, {n, m})
    q, r = linalg.qr(x)
    equals({q.shape, r.shape}, {{n, 0}, {0, m}})
    equals(linalg.pinv(x).shape, {m, n})
    equals(linalg.matrix_rank(x):item(), 0)
  end
  equals(linalg.lstsq(wide, tensor.zeros(0, 2)):totable(), {{0, 0}, {0, 0}, {0, 0}})
  local x, residuals = linalg.lstsq(tall, tensor.ones(3, 2))
  equals(x.shape, {0, 2})
  equals(residuals:totable(), {3, 3})
  equals(linalg.eigh(none).shape, {0})
  equals(linalg.eig(none).shape, {0})
  equals(linalg.norm(tensor.zeros(0)):item(), 0)
end

function TestEmpty:test_no_matrices()
  local none = tensor.zeros(0, 3, 3)
  equals(linalg.inv(none).shape, {0, 3, 3})
  equals(linalg.det(none).shape, {0})
  equals(linalg.solve(none, tensor.zeros(3, 2)).shape, {0, 3, 2})
  local u, s, vh = linalg.svd(tensor.zeros(2, 0, 4, 3))
  equals({u.shape, s.shape, vh.shape}, {{2, 0, 4, 4}, {2, 0, 3}, {2, 0, 3, 3}})
  equals(linalg.eig(none):totable(), {})
end

TestChunks = {}

-- Small matrices are taken together, and large ones one by one, with the same results.
function TestChunks:test_many_matrices()
  local n = support.slow and 200 or 3000
  local a = tensor.randn(n, 3, 3) + tensor.eye(3) * 5
  local inverse, determinant = linalg.inv(a), linalg.det(a)
  close(inverse:matmul(a), identity({n}, 3, "float32"), "inverses")
  for _, i in ipairs {1, 2, n // 2, n - 1, n} do
    lu.assertTrue(linalg.inv(a[i]) == inverse[i])
    lu.assertTrue(linalg.det(a[i]) == determinant[i])
  end
end

-- LAPACK takes these in blocks.
function TestChunks:test_large_matrices()
  local n, m = 150, 200
  local float64 = {dtype = "float64"}
  local a, tall = regular({}, n, "float64"), tensor.randn(m, n, float64)
  local unit = tensor.eye(n, float64)
  close(linalg.inv(a):mm(a), unit, "inv", 100)
  close(a:mm(linalg.solve(a, a)), a, "solve", 100)
  local positive = a:mm(a:t()) + unit
  local lower = linalg.cholesky(positive)
  close(lower:mm(lower:t()) / n, positive / n, "cholesky", 10)
  for _, x in ipairs {tall, tall:t()} do
    local q, r = linalg.qr(x, "complete")
    close(q:mm(r), x, "qr", 10)
    close(q:t():mm(q), tensor.eye(q.shape[1], float64), "q", 10)
    local u, s, vh = linalg.svd(x, false)
    close((u * s):mm(vh), x, "svd", 100)
    close(linalg.pinv(x):mm(x):mm(linalg.pinv(x)), linalg.pinv(x), "pinv", 100)
  end
  local values, vectors = linalg.eigh(positive)
  close((vectors * values):mm(vectors:t()) / n, positive / n, "eigh", 10)
  local real, imaginary, v, w = linalg.eig(a)
  close(a:mm(v), v * real - w * imaginary, "eig", 100)
  close(linalg.lstsq(tall:t(), unit), linalg.pinv(tall:t()), "lstsq", 100)
  close(linalg.lstsq(tall, tensor.eye(m, float64)), linalg.pinv(tall), "lstsq", 100)
end

function TestChunks:test_same_bits_on_any_number_of_threads()
  tensor.manual_seed(11)
  local n = support.slow and 12 or 60
  local a = tensor.randn(6, n, n)
  local many = tensor.randn(200, 4, 3)
  local positive = a:matmul(turn(a)) + tensor.eye(n) * n
  local first
  support.each_thread_count(function()
    local results = {linalg.inv(a), linalg.solve(a, a), linalg.det(a), linalg.cholesky(positive)}
    for _, list in ipairs {{linalg.svd(a)}, {linalg.qr(a)}, {linalg.eigh(positive)},
                           {linalg.eig(a)}, {linalg.svd(many)}, {linalg.lstsq(many, many)}} do
      results = join(results, list)
    end
    first = first or results
    for i = 1, #results do lu.assertTrue(results[i] == first[i], i) end
  end)
end

TestCompiled = {}

function TestCompiled:test_several_results()
  local line = debug.getinfo(1, "l").currentline + 4
  local f = tensor.compile(function(x)
    local u, s, vh = linalg.svd(x, false)
    local q, r = linalg.qr(x)
    return s, u:matmul(vh), q:matmul(r), linalg.inv(x)
  end)
  for i = 1, 4 do
    local x = tensor.randn(3, 5, 5)
    local s, polar, same, inverse = f(x)
    lu.assertTrue(s == select(2, linalg.svd(x, false)), i)
    lu.assertTrue(inverse == linalg.inv(x), i)
    local u, _, vh = linalg.svd(x, false)
    lu.assertTrue(polar == u:matmul(vh), i)
    close(same, x, "q r")
  end
  raises(("linalg.inv: matrix 1 of the batch is singular (queued at %s:%d)"):format(arg[0], line),
         function() return select(4, f(tensor.ones(3, 5, 5))):totable() end)
  pcall(sync)
end

-- ---- what is refused ----

TestErrors = {}

function TestErrors:test_at_the_call()
  local ones = tensor.ones
  raises("linalg.inv: wants matrices, not size 3", linalg.inv, ones(3))
  raises("linalg.inv: wants square matrices, not size 4x2x3", linalg.inv, ones(4, 2, 3))
  raises("linalg.inv: argument 1 must be a tensor, not missing", linalg.inv)
  raises("linalg.inv: 2 arguments are too many: at most 1", linalg.inv, ones(2, 2), 1)
  raises("linalg.svd: argument 1 must be a tensor, not number", linalg.svd, 1)
  raises("linalg.svd: full_matrices must be true or false, not 1", linalg.svd, ones(2, 2), 1)
  raises("linalg.svd: unknown option 'full': full_matrices", linalg.svd, ones(2, 2), {full = true})
  raises("linalg.qr: mode must be 'reduced', 'complete' or 'r', not R", linalg.qr, ones(2, 2), "R")
  raises("linalg.qr: mode must be 'reduced', 'complete' or 'r', not table", linalg.qr, ones(2, 2),
         {mode = {}})
  raises("linalg.eigh: UPLO must be 'L' or 'U', not l", linalg.eigh, ones(2, 2), "l")
  raises("linalg.cholesky: upper must be true or false, not yes", linalg.cholesky,
         ones(2, 2), "yes")
  raises("linalg.matrix_rank: atol must be a number from 0 on, not -1", linalg.matrix_rank,
         ones(2, 2), {atol = -1})
  raises("linalg.pinv: rtol must be a number from 0 on, not nan", linalg.pinv, ones(2, 2),
         {rtol = math.abs(NAN)})
  raises("linalg.pinv: unknown option 'hermitian': atol or rtol", linalg.pinv, ones(2, 2),
         {hermitian = true})
  raises("linalg.solve: sizes 2x2 and 3 do not fit: wants as many rows in both", linalg.solve,
         ones(2, 2), ones(3))
  raises("linalg.solve: sizes 2x2 and () do not fit: wants as many rows in both", linalg.solve,
         ones(2, 2), tensor(1))
  raises("linalg.solve: sizes 3x2x2 and 4x2x1 do not fit: their batches do not broadcast",
         linalg.solve, ones(3, 2, 2), ones(4, 2, 1))
  raises("linalg.solve: operands are float32 and float64: convert one with :to()", linalg.solve,
         ones(2, 2), ones(2, {dtype = "float64"}))
  raises("linalg.solve: left must be true or false, not 1", linalg.solve, ones(2, 2), ones(2), 1)
  raises("linalg.solve: sizes 2x2 and 2 do not fit: with left = false wants matrices", linalg.solve,
         ones(2, 2), ones(2), false)
  raises("linalg.lstsq: sizes 3x2 and 2x1 do not fit: wants as many rows in both", linalg.lstsq,
         ones(3, 2), ones(2, 1))
  raises("linalg.svd: matrices of size 0x2147483648 are larger than LAPACK takes", linalg.svd,
         tensor.zeros(0, 1 << 31))
end

function TestErrors:test_norms()
  local x = tensor.ones(2, 2)
  raises("linalg.norm: there is no norm 3 of matrices: 'fro', 'nuc', 1, 2, inf or their " ..
         "negatives", linalg.norm, x, 3)
  raises("linalg.norm: a norm of vectors is a number, not fro", linalg.norm, x, "fro", 1)
  for _, order in ipairs {1, 2, -2, INF} do
    raises("linalg.norm: there are no elements to choose the largest or smallest from",
           linalg.norm, tensor.zeros(0, order == INF and 2 or 0), order)
  end
  raises("linalg.norm: dimension 3 is out of range for a tensor of size 2x2", linalg.norm, x, 2, 3)
  raises("linalg.norm: dimension 2 is there twice", linalg.norm, x, 2, {2, 2})
  raises("linalg.norm: wants one dimension or two, not 3", linalg.norm, tensor.ones(1, 1, 1), 2)
  raises("linalg.norm: unknown option 'dims': ord or dim or keepdim", linalg.norm, x, {dims = 1})
  raises("linalg.norm: keepdim must be true or false, not 1", linalg.norm, x, 2, 1, 1)
end

-- Every function meets every pair of such values behind a good first argument, or without one.
function TestErrors:test_bad_values()
  local closed = tensor.ones(2)
  do local _ <close> = closed end
  local values = {false, -1, 0, 2.5, NAN, 1 << 62, "text", "ij", {}, {1, 2}, {{}}, {[{}] = 1},
                  print, coroutine.create(print), tensor.ones(2, 2), tensor(3),
                  tensor.zeros(0, 2), tensor.ones(2, 3, 3, {dtype = "float64"}), closed}
  local functions = {einsum = tensor.einsum, outer = tensor.outer, addmm = tensor.addmm,
                     addmm_ = tensor.addmm_, bmm = tensor.bmm, matmul = tensor.matmul}
  for name, f in pairs(linalg) do functions["linalg." .. name] = f end
  local function try(name, ...)
    local ok, message = pcall(functions[name], ...)
    if ok or message:find("(queued at", 1, true) then return end
    lu.assertStrContains(message, arg[0])
    lu.assertStrContains(message, ": " .. name .. ": ")
    lu.assertNil(message:find "[\n]" or message:find ": 0x", message)
  end
  for name in pairs(functions) do
    local first = name == "einsum" and "i,j" or tensor.eye(2)
    for i = 1, #values, support.slow and 3 or 1 do
      for j = 1, #values, support.slow and 4 or 1 do
        local x, y = values[i], values[j]
        try(name, first, x, y)
        try(name, x, y)
        try(name, first, first, first, x, y)
      end
    end
  end
  pcall(sync)
  equals(linalg.det(tensor.eye(2)):item(), 1)
end

-- Asks for the message of reading x, which was queued at `line` of this file.
local function fails(message, x, line)
  raises(("%s (queued at %s:%d)"):format(message, arg[0], line), function() return x:totable() end)
end

local function here_line() return debug.getinfo(2, "l").currentline end

function TestErrors:test_values()
  lu.skipIf(support.synchronous, "they are raised at the call")
  local one, line = tensor{{1, 2}, {2, 4}}
  local other = tensor{{1, 2}, {3, 4}}
  line = here_line()
  local inverse = linalg.inv(one)
  local sum, fine = inverse + 1, linalg.inv(other)
  fails("linalg.inv: the matrix is singular", sum, line + 1)
  fails("linalg.inv: the matrix is singular", inverse, line + 1)
  close(fine:matmul(other), tensor.eye(2), "another inverse")

  line = here_line()
  local q, r = linalg.qr(linalg.inv(one))
  fails("linalg.inv: the matrix is singular", q, line + 1)
  fails("linalg.inv: the matrix is singular", r, line + 1)

  line = here_line()
  local solution = linalg.solve(one, tensor{1, 2})
  fails("linalg.solve: the matrix is singular", solution, line + 1)

  line = here_line()
  local lower = linalg.cholesky(tensor{{1, 2}, {2, 1}})
  fails("linalg.cholesky: the matrix is not positive-definite: its leading minor of order 2 is not",
        lower, line + 1)
  pcall(sync)
end

function TestErrors:test_which_of_a_batch()
  lu.skipIf(support.synchronous, "they are raised at the call")
  local a = tensor.zeros(40, 30, 30) + tensor.eye(30)
  a[17]:zero_()
  a[33]:zero_()
  for _ = 1, 5 do
    local line = here_line()
    fails("linalg.inv: matrix 17 of the batch is singular", linalg.inv(a), line + 1)
    fails("linalg.cholesky: matrix 17 of the batch is not positive-definite: its leading minor " ..
          "of order 1 is not", linalg.cholesky(a:reshape(2, 20, 30, 30)), line + 3)
  end
  equals(linalg.det(a)[17]:item(), 0)
  local sign, log = linalg.slogdet(a)
  equals({sign[17]:item(), log[17]:item()}, {0, -INF})
  pcall(sync)
end

-- All results fail, and those of others do not.
function TestErrors:test_not_finite()
  lu.skipIf(support.synchronous, "they are raised at the call")
  for _, value in ipairs {NAN, INF, -INF} do
    local a = tensor{{1, 2}, {value, 3}}
    for name, results in pairs {svd = 3, svdvals = 1, eigh = 2, eigvalsh = 1, eig = 4, eigvals = 2,
                                pinv = 1, matrix_rank = 1} do
      local line = here_line() + 1
      local list = {linalg[name](a)}
      equals(#list, results)
      for _, x in ipairs(list) do
        fails(("linalg.%s: the matrix has elements that are not finite"):format(name), x, line)
      end
    end
    local line = here_line() + 1
    local x = linalg.lstsq(tensor.eye(2), a)
    fails("linalg.lstsq: the matrix has elements that are not finite", x, line)
  end
  pcall(sync)
end

-- Where nan and inf do no harm they give nan, or a failure.
function TestErrors:test_nan_without_iteration()
  local a = tensor{{1, NAN}, {2, 3}}
  lu.assertIsNaN(linalg.det(a):item())
  lu.assertIsNaN(linalg.slogdet(a):item())
  lu.assertIsNaN(linalg.inv(a)[1][1]:item())
  lu.assertIsNaN(linalg.solve(a, tensor{1, 1})[1]:item())
  lu.assertIsNaN(select(2, linalg.qr(a))[2][2]:item())
  local line = here_line() + 3
  raises("linalg.cholesky: the matrix is not positive-definite: its leading minor of order 1 is " ..
         ("not (queued at %s:%d)"):format(arg[0], line),
         function() return linalg.cholesky(tensor{{NAN, 0}, {0, 1}}):totable() end)
  pcall(sync)
end

function TestErrors:test_injected()
  local script = [[
local u, s, vh = tensor.linalg.svd(tensor.ones(30, 30))
local ok = tensor.ones(2):totable()
for _, x in ipairs{u, s, vh} do print(pcall(x.totable, x)) end
print(ok[1], tensor.linalg.svdvals(tensor.eye(2)))]]
  for _, fault in ipairs {"linalg.svd:1", "alloc:3"} do
    local status, out = support.run_script(script, {FAULT = fault})
    equals(status, 0)
    local text = "false\tSCRIPT:3: linalg.svd: injected failure (queued at SCRIPT:1)\n"
    equals(out, text:rep(3) .. "1.0\ttensor([1., 1.])\n", fault)
  end
end

os.exit(lu.LuaUnit.run())
