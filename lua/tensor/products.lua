-- Products of matrices and vectors that are made of others.
local _, internal = ...
local check = internal.check
local arguments = internal.require "tensor.arguments"
local fail, describe, size_text = arguments.fail, arguments.describe, arguments.size_text

local function outer(a, b, ...)
  check("outer", a, b)
  arguments.count("outer", 2, ...)
  if a.ndim ~= 1 or b.ndim ~= 1 then
    fail("outer: wants a vector and a vector, not sizes %s and %s", size_text(a), size_text(b))
  end
  return a:reshape(-1, 1) * b
end

-- beta and alpha, which are 1 when they are not given.
local function factors(name, ...)
  local beta, alpha = arguments.options(name, 3, {"beta", "alpha"}, ...)
  if beta == nil then beta = 1 end
  if alpha == nil then alpha = 1 end
  if type(beta) ~= "number" or type(alpha) ~= "number" then
    fail("%s: beta and alpha must be numbers, not %s and %s", name, describe(beta), describe(alpha))
  end
  return beta, alpha
end

local function broadcasts_to(shape, to)
  if #shape > #to then return false end
  for d = 1, #shape do
    local size = shape[#shape + 1 - d]
    if size ~= 1 and size ~= to[#to + 1 - d] then return false end
  end
  return true
end

local function add_product(name, x, a, b, ...)
  check(name, x, a, b)
  local beta, alpha = factors(name, ...)
  if a.ndim ~= 2 or b.ndim ~= 2 or a.shape[2] ~= b.shape[1] then
    fail("%s: cannot multiply %s by %s", name, size_text(a), size_text(b))
  end
  if a.dtype ~= b.dtype or x.dtype ~= a.dtype then
    fail("%s: operands are %s, %s and %s: convert them with :to()", name, x.dtype, a.dtype, b.dtype)
  end
  local size = {a.shape[1], b.shape[2]}
  if not broadcasts_to(x.shape, size) then
    fail("%s: cannot add %dx%d to size %s", name, size[1], size[2], size_text(x))
  end
  local dtype, compute = a.dtype, internal.compute(a.dtype)
  if compute ~= "int64" then x, a, b = x:to(compute), a:to(compute), b:to(compute) end
  local sum = a:mm(b)
  if alpha ~= 1 then sum = sum * alpha end
  if beta ~= 0 then sum = (beta == 1 and x or x * beta) + sum end -- else even where x is nan
  return sum:to(dtype) -- rounded once
end

local function addmm(...) return add_product("addmm", ...) end

local function addmm_(x, ...)
  local sum = add_product("addmm_", x, ...)
  if x.ndim ~= 2 or x.shape[1] ~= sum.shape[1] or x.shape[2] ~= sum.shape[2] then
    fail("addmm_: cannot put %s into size %s", size_text(sum), size_text(x))
  end
  return x:copy_(sum)
end

return {
  {"outer", outer, doc = "outer(x, y): every element of x times every element of y",
   example = "tensor.outer(tensor{1, 2}, tensor{3, 4})",
   value = "tensor([[3., 4.],\n        [6., 8.]])"},
  {"addmm", addmm, doc = "addmm(x, a, b [, {beta = 1, alpha = 1}]): beta x + alpha (a mm b)",
   example = "tensor.addmm(tensor{1, 1}, tensor{{1, 2}}, tensor.ones(2, 2), {alpha = 10})",
   value = "tensor([[31., 31.]])"},
  {"addmm_", addmm_, doc = "x becomes beta x + alpha (a mm b)",
   example = "tensor.ones(1, 1):addmm_(tensor{{1, 2}}, tensor.ones(2, 1), {beta = 0})",
   value = "tensor([[3.]])"},
}
