-- Order and differences: what can be said through sorting, searching and ranges.
local _, internal = ...
local tensor, check = internal.tensor, internal.check
local arguments = internal.require "tensor.arguments"
local fail = arguments.fail

-- A dimension from 1, or the usual one; a tensor without any has one.
local function dim_of(name, x, dim, usual)
  return arguments.dim(name, x.ndim == 0 and {1} or x.shape, dim == nil and usual or dim)
end

local function diff(x, n, dim, ...)
  check("diff", x)
  arguments.count("diff", 3, ...)
  local times = arguments.integer("diff", 2, n == nil and 1 or n)
  if times < 0 then fail("diff: %d times are too few: at least 0", times) end
  if x.ndim == 0 then fail("diff: a number has no differences: wants at least one dimension") end
  dim = dim_of("diff", x, dim, -1)
  for _ = 1, times do
    local size = x.shape[dim]
    if size == 0 then break end
    local after, before = x:narrow(dim, 2, size - 1), x:narrow(dim, 1, size - 1)
    x = x.dtype == "bool" and after:logical_xor(before) or after - before
  end
  return x
end

local function bucketize(x, boundaries, options, ...)
  check("bucketize", x, boundaries)
  arguments.count("bucketize", 3, ...)
  if boundaries.ndim ~= 1 then
    fail("bucketize: the boundaries must have one dimension, not %d", boundaries.ndim)
  end
  return boundaries:searchsorted(x, options)
end

-- The quantile q of sorted lines, between two elements in proportion.
local function between(sorted, dim, q)
  local size = sorted.shape[dim]
  local rank = q * (size - 1)
  local low = math.floor(rank)
  local weight = rank - low
  local at = sorted:narrow(dim, low + 1, 1)
  if weight > 0 then
    local next = sorted:narrow(dim, low + 2, 1)
    local step = next - at
    local made = weight < 0.5 and at + step * weight or next - step * (1 - weight)
    at = at:eq(next):where(at, made) -- infinite ones have no difference
  end
  local last = sorted:narrow(dim, size, 1)
  return last:isnan():where(last, at) -- nan is last when there is one
end

local function quantile(x, q, dim, keepdim, ...)
  check("quantile", x)
  arguments.count("quantile", 4, ...)
  if x.dtype ~= "float32" and x.dtype ~= "float64" then
    fail("quantile: wants float32 or float64, not %s: convert with :to()", x.dtype)
  end
  if keepdim ~= nil and type(keepdim) ~= "boolean" then
    fail("quantile: keepdim must be true or false, not %s", internal.kind(keepdim))
  end
  local list, count = arguments.list(q)
  for i = 1, math.max(count, 1) do
    local value = list[i]
    if type(value) ~= "number" or not (value >= 0 and value <= 1) then
      fail("quantile: wants numbers from 0 to 1, not %s",
           type(value) == "number" and value or internal.kind(value))
    end
  end
  local ndim, all = x.ndim, dim == nil
  local shape, kept = x.shape, {}
  if all then
    for d = 1, ndim do shape[d] = 1 end
    if keepdim then kept = shape end
    x, dim = x:reshape(-1), 1
  else
    dim = dim_of("quantile", x, dim)
    if ndim == 0 then x = x:reshape(1) end
    for d = 1, ndim do
      if d ~= dim then kept[#kept + 1] = shape[d] elseif keepdim then kept[#kept + 1] = 1 end
    end
  end
  if x.shape[dim] == 0 then fail("quantile: there are no elements to choose from") end
  local sorted = x:sort(dim)
  local made = {}
  for i = 1, math.max(count, 1) do made[i] = between(sorted, dim, list[i]):reshape(kept) end
  return type(q) == "table" and tensor.stack(made) or made[1]
end

-- In place, as the tensor's own dtype.
local function in_place(name)
  return function(x, dim, ...)
    check(name .. "_", x)
    arguments.count(name .. "_", 2, ...)
    return x:copy_(tensor[name](x, dim_of(name .. "_", x, dim)))
  end
end

return {
  {"diff", diff, doc = "diff(x [, n [, dim]]): each element minus the one before it, n times over",
   example = "tensor{1, 4, 9}:diff()", value = "tensor([3., 5.])"},
  {"bucketize", bucketize,
   doc = "bucketize(x, boundaries [, {right =}]): boundaries:searchsorted(x), for each element",
   example = "tensor{3, 4}:bucketize(tensor{1, 3, 5})", value = "tensor([2, 3])"},
  {"quantile", quantile,
   doc = "quantile(x, q [, dim [, keepdim]]): below it lies the share q of the elements",
   example = "tensor{1, 2, 4}:quantile(0.75)", value = "tensor(3.)"},
  {"cumsum_", in_place "cumsum", doc = "x:cumsum_(dim): cumsum, in place",
   example = "tensor{1, 2, 3}:cumsum_(1)", value = "tensor([1., 3., 6.])"},
  {"cumprod_", in_place "cumprod", doc = "x:cumprod_(dim): cumprod, in place",
   example = "tensor{1, 2, 3}:cumprod_(1)", value = "tensor([1., 2., 6.])"},
}
