-- tensor.linalg: PyTorch's functions of that name, each over a command of src/frontend/linalg.c.
-- Matrices are the last two dimensions; what comes before them counts a batch.  An argument that
-- PyTorch takes by name is an option here, or the next argument.
local _, internal = ...
local check, tensor, C = internal.check, internal.tensor, internal.linalg
local arguments = internal.require "tensor.arguments"
local fail, describe, options = arguments.fail, arguments.describe, arguments.options
local size_text = arguments.size_text

-- ---- square matrices ----

local function solve(a, b, ...)
  check("linalg.solve", a, b)
  local left = options("linalg.solve", 2, {"left"}, ...)
  if left == nil or left == true then return C.solve(a, b) end
  if left ~= false then fail("linalg.solve: left must be true or false, not %s", describe(left)) end
  if a.ndim < 2 or b.ndim < 2 then
    fail("linalg.solve: sizes %s and %s do not fit: with left = false wants matrices", size_text(a),
         size_text(b))
  end
  local function turn(x) return x:transpose(-2, -1) end
  return turn(C.solve(turn(a), turn(b)))
end

-- A function of matrices whose options are the arguments of one in C.
local function with_options(short, ...)
  local name, names, f = "linalg." .. short, {...}, C[short]
  return function(a, ...)
    check(name, a)
    local first, second = options(name, 1, names, ...)
    return f(a, first, second)
  end
end

-- ---- matrices of any size ----

local function qr(a, ...)
  check("linalg.qr", a)
  local mode = options("linalg.qr", 1, {"mode"}, ...)
  local q, r = C.qr(a, mode)
  if mode == "r" then return tensor.zeros(0, {dtype = a.dtype}), q end
  return q, r
end

-- A number is the relative tolerance here, and the absolute one of matrix_rank: as in PyTorch.
local function pinv(a, first, ...)
  check("linalg.pinv", a)
  if type(first) ~= "table" then
    arguments.count("linalg.pinv", 2, ...)
    return C.pinv(a, nil, first)
  end
  return C.pinv(a, options("linalg.pinv", 1, {"atol", "rtol"}, first, ...))
end

-- The residuals are those of the solution, whatever the rank.
local function lstsq(a, b, ...)
  check("linalg.lstsq", a, b)
  local rcond = options("linalg.lstsq", 2, {"rcond"}, ...)
  local x, rank, values, vectors = C.lstsq(a, b, rcond)
  local rows, columns = a.shape[a.ndim - 1], a.shape[a.ndim]
  if rows <= columns then return x, tensor.zeros(0, {dtype = a.dtype}), rank, values end
  local difference
  if vectors then
    local shape = x.shape
    shape[#shape + 1] = 1
    local made = a:matmul(x:reshape(shape))
    shape = made.shape
    shape[#shape] = nil
    difference = made:reshape(shape) - b
  else
    difference = a:matmul(x) - b
  end
  return x, (difference * difference):sum(vectors and -1 or -2), rank, values
end

-- ---- norms ----

-- The dimensions, one or two, in a list of numbers from 1 on.
local function check_dims(x, given)
  local dims = {}
  for i, d in ipairs(type(given) == "table" and given or {given}) do
    local at = math.type(d) == "float" and math.tointeger(d) or d
    if math.type(at) == "integer" and at < 0 then at = x.ndim + 1 + at end
    if math.type(at) ~= "integer" or at < 1 or at > x.ndim then
      fail("linalg.norm: dimension %s is out of range for a tensor of size %s", describe(d),
           size_text(x))
    end
    if at == dims[1] then fail("linalg.norm: dimension %d is there twice", d) end
    dims[i] = at
  end
  return dims
end

local function check_choice(x, dim)
  if x:size(dim) > 0 then return end
  fail "linalg.norm: there are no elements to choose the largest or smallest from"
end

local function largest(x, dim)
  check_choice(x, dim)
  return (x:amax(dim, true))
end

local function smallest(x, dim)
  check_choice(x, dim)
  return (x:amin(dim, true))
end

-- Along one dimension, which is kept with size 1.
local function vector_norm(x, order, dim)
  if order == 2 then return (x * x):sum(dim, true):sqrt() end
  local size = x:abs()
  if order == math.huge then return largest(size, dim) end
  if order == -math.huge then return smallest(size, dim) end
  if order == 1 then return size:sum(dim, true) end
  -- Multiplied twice by the largest number of the dtype, the smallest one is above 1.
  local huge = x.dtype == "float64" and 0x1.fffffffffffffp1023 or 0x1.fffffep127
  if order == 0 then return tensor.minimum(size * huge * huge, 1):sum(dim, true) end
  return (size ^ order):sum(dim, true) ^ (1 / order)
end

-- The singular values of the matrices in dimensions `rows` and `columns`, of which `of` makes one
-- number, with both dimensions kept.
local function spectral_norm(x, rows, columns, of)
  local shape, last, order = x.shape, x.ndim, {}
  for d = 1, last do
    if d ~= rows and d ~= columns then order[#order + 1] = {d} end
  end
  order[last - 1], order[last] = {rows}, {columns}
  shape[rows], shape[columns] = 1, 1
  return of(C.svdvals(C.regroup(x, order))):reshape(shape)
end

local function sum_of_values(s) return s:sum(-1) end
local function largest_value(s) return largest(s, -1) end
local function smallest_value(s) return smallest(s, -1) end

local MATRIX_NORMS = {
  fro = function(x, rows, columns) return (x * x):sum(columns, true):sum(rows, true):sqrt() end,
  nuc = function(x, rows, columns) return spectral_norm(x, rows, columns, sum_of_values) end,
  [2] = function(x, rows, columns) return spectral_norm(x, rows, columns, largest_value) end,
  [-2] = function(x, rows, columns) return spectral_norm(x, rows, columns, smallest_value) end,
  [1] = function(x, rows, columns) return largest(x:abs():sum(rows, true), columns) end,
  [-1] = function(x, rows, columns) return smallest(x:abs():sum(rows, true), columns) end,
  [math.huge] = function(x, rows, columns) return largest(x:abs():sum(columns, true), rows) end,
  [-math.huge] = function(x, rows, columns) return smallest(x:abs():sum(columns, true), rows) end,
}

-- The result with the dimensions that it was taken over left out, or kept with size 1.
local function finish(x, result, dims, keepdim)
  local is_reduced, size = {}, {}
  for _, d in ipairs(dims) do is_reduced[d] = true end
  for d = 1, x.ndim do
    if not is_reduced[d] then
      size[#size + 1] = x.shape[d]
    elseif keepdim then
      size[#size + 1] = 1
    end
  end
  return result:reshape(size)
end

local function all_dims(x)
  local dims = {}
  for d = 1, x.ndim do dims[d] = d end
  return dims
end

local function check_norm(x, order, dims, keepdim)
  if not x.dtype:find "float" then
    fail("linalg.norm: wants a floating-point dtype, not %s: convert it with :to()", x.dtype)
  end
  if keepdim ~= nil and type(keepdim) ~= "boolean" then
    fail("linalg.norm: keepdim must be true or false, not %s", describe(keepdim))
  end
  if #dims ~= 1 and #dims ~= 2 then
    fail("linalg.norm: wants one dimension or two, not %d", #dims)
  end
  if #dims == 1 and type(order) ~= "number" then
    fail("linalg.norm: a norm of vectors is a number, not %s", describe(order))
  end
  if #dims == 2 and not MATRIX_NORMS[order] then
    fail("linalg.norm: there is no norm %s of matrices: 'fro', 'nuc', 1, 2, inf or their negatives",
         describe(order))
  end
end

local function norm(x, ...)
  check("linalg.norm", x)
  local order, given, keepdim = options("linalg.norm", 1, {"ord", "dim", "keepdim"}, ...)
  local flat = given == nil and order == nil
  local dims = flat and {1} or given == nil and all_dims(x) or check_dims(x, given)
  if order == nil then order = #dims == 1 and 2 or "fro" end
  check_norm(x, order, dims, keepdim)
  if flat then return finish(x, vector_norm(x:reshape(-1), 2, 1), all_dims(x), keepdim) end
  local result = #dims == 1 and vector_norm(x, order, dims[1])
                 or MATRIX_NORMS[order](x, dims[1], dims[2])
  return finish(x, result, dims, keepdim)
end

return {
  {"linalg.solve", solve,
   doc = "linalg.solve(A, B [, {left = true}]): the X with A X = B, or X A = B; B is matrices " ..
         "or vectors",
   example = "tensor.linalg.solve(tensor{{2, 0}, {0, 4}}, tensor{2, 2})",
   value = "tensor([1.0000, 0.5000])"},
  {"linalg.inv", C.inv, doc = "linalg.inv(A): the inverse",
   example = "tensor.linalg.inv(tensor{{4, 7}, {2, 6}})",
   value = "tensor([[ 0.6000, -0.7000],\n        [-0.2000,  0.4000]])"},
  {"linalg.det", C.det, doc = "linalg.det(A): the determinant",
   example = "tensor.linalg.det(tensor{{1, 2}, {3, 4}})", value = "tensor(-2.)"},
  {"linalg.slogdet", C.slogdet,
   doc = "linalg.slogdet(A): the determinant's sign, and the logarithm of its absolute value",
   example = "select(2, tensor.linalg.slogdet(tensor{{1, 0}, {0, 1}}))", value = "tensor(0.)"},
  {"linalg.cholesky", with_options("cholesky", "upper"),
   doc = "linalg.cholesky(A [, {upper = false}]): the lower triangular L with L L^T = A, or its " ..
         "transpose; only that triangle of A is read",
   example = "tensor.linalg.cholesky(tensor{{4, 0}, {0, 9}})",
   value = "tensor([[2., 0.],\n        [0., 3.]])"},
  {"linalg.qr", qr,
   doc = "linalg.qr(A [, {mode = 'reduced'}]): Q, R with Q R = A; mode 'complete' makes Q " ..
         "square, 'r' gives only R",
   example = "tensor.linalg.qr(tensor{{3, 1}, {4, 2}}):abs()",
   value = "tensor([[0.6000, 0.8000],\n        [0.8000, 0.6000]])"},
  {"linalg.svd", with_options("svd", "full_matrices"),
   doc = "linalg.svd(A [, {full_matrices = true}]): U, S, Vh with U diag(S) Vh = A, S falling",
   example = "select(2, tensor.linalg.svd(tensor{{3, 0}, {0, -2}}))", value = "tensor([3., 2.])"},
  {"linalg.svdvals", C.svdvals, doc = "linalg.svdvals(A): the singular values, falling",
   example = "tensor.linalg.svdvals(tensor{{3, 0}, {0, -2}})", value = "tensor([3., 2.])"},
  {"linalg.eigh", with_options("eigh", "UPLO"),
   doc = "linalg.eigh(A [, {UPLO = 'L'}]): eigenvalues, rising, and eigenvectors (columns) of a " ..
         "symmetric matrix, of which one triangle is read",
   example = "tensor.linalg.eigh(tensor{{2, 0}, {0, 1}})", value = "tensor([1., 2.])"},
  {"linalg.eigvalsh", with_options("eigvalsh", "UPLO"),
   doc = "linalg.eigvalsh(A [, {UPLO = 'L'}]): eigenvalues of a symmetric matrix, rising",
   example = "tensor.linalg.eigvalsh(tensor{{2, 0}, {0, 1}})", value = "tensor([1., 2.])"},
  {"linalg.eig", C.eig,
   doc = "linalg.eig(A): eigenvalues and eigenvectors (columns) of any matrix as four tensors: " ..
         "the values' real and imaginary parts, then the vectors'",
   example = "select(2, tensor.linalg.eig(tensor{{0, -1}, {1, 0}}))", value = "tensor([ 1., -1.])"},
  {"linalg.eigvals", C.eigvals,
   doc = "linalg.eigvals(A): eigenvalues of any matrix, their real and their imaginary parts",
   example = "tensor.linalg.eigvals(tensor{{2, 0}, {0, 1}})", value = "tensor([2., 1.])"},
  {"linalg.lstsq", lstsq,
   doc = "linalg.lstsq(A, B [, {rcond =}]): the X that makes A X - B least, the sums of its " ..
         "squares (empty unless A has more rows than columns), the rank, the singular values",
   example = "tensor.linalg.lstsq(tensor{{1}, {1}}, tensor{{2}, {4}}):allclose(tensor{{3}})",
   value = "true"},
  {"linalg.norm", norm,
   doc = "linalg.norm(x [, ord, dim, keepdim]): of vectors (one dim; ord any number) or " ..
         "matrices (two; 'fro', 'nuc', 1, 2, inf or negative); by default of all elements",
   example = "tensor.linalg.norm(tensor{3, -4})", value = "tensor(5.)"},
  {"linalg.matrix_rank", with_options("matrix_rank", "atol", "rtol"),
   doc = "linalg.matrix_rank(A [, {atol =, rtol =}]): how many singular values do not count as 0",
   example = "tensor.linalg.matrix_rank(tensor{{1, 2}, {2, 4}}):item() == 1", value = "true"},
  {"linalg.pinv", pinv,
   doc = "linalg.pinv(A [, {atol =, rtol =}]): the pseudoinverse",
   example = "tensor.linalg.pinv(tensor{{2, 0}})", value = "tensor([[0.5000],\n        [0.0000]])"},
}
