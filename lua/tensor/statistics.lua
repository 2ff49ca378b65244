-- Reductions and normalisations of several steps.  Dimensions are given as to sum(): one, a table
-- of them, or none for all; then keepdim, or a table of options.
local _, internal = ...
local tensor, check = internal.tensor, internal.check
local arguments = internal.require "tensor.arguments"
local fail = arguments.fail

-- The options behind the dimensions, with the usual values of those that are not given.
local function options_of(name, given, usual)
  if type(given) ~= "table" then
    if given ~= nil and type(given) ~= "boolean" then
      fail("%s: keepdim must be true or false, not %s", name, internal.kind(given))
    end
    given = {keepdim = given}
  end
  local options = {}
  for key, value in pairs(usual) do options[key] = value end
  for key, value in pairs(given) do
    if usual[key] == nil then fail("%s: unknown option '%s'", name, tostring(key)) end
    if type(value) ~= type(usual[key]) then
      fail("%s: option %s must be a %s, not %s", name, key, type(usual[key]), internal.kind(value))
    end
    options[key] = value
  end
  return options
end

-- x in a dtype that several steps can be computed in, and that of the result.
local function widened(x)
  local dtype, compute = x.dtype, internal.compute(x.dtype)
  if compute == "int64" then return x:to "float32", "float32" end
  return x:to(compute), dtype
end

-- How many elements make one, of a reduction from x to a result.
local function count(x, result)
  return result:numel() > 0 and x:numel() // result:numel() or 0
end

local function variance(name, x, dims, given)
  local wide, dtype = widened(x)
  local options = options_of(name, given, {keepdim = false, correction = 1})
  local away = wide - wide:mean(dims, true)
  local total = (away * away):sum(dims, options.keepdim)
  local divisor = count(x, total) - options.correction
  return total / math.max(divisor, 0), dtype
end

local function var(x, dims, options, ...)
  check("var", x)
  arguments.count("var", 3, ...)
  local result, dtype = variance("var", x, dims, options)
  return result:to(dtype)
end

local function std(x, dims, options, ...)
  check("std", x)
  arguments.count("std", 3, ...)
  local result, dtype = variance("std", x, dims, options)
  return result:sqrt():to(dtype)
end

local function norm(x, p, dims, keepdim, ...)
  check("norm", x)
  arguments.count("norm", 4, ...)
  local wide, dtype = widened(x)
  p = p == nil and 2 or p
  if type(p) ~= "number" then fail("norm: p must be a number, not %s", internal.kind(p)) end
  local keep = options_of("norm", keepdim, {keepdim = false}).keepdim
  local result
  if p == 2 then
    result = (wide * wide):sum(dims, keep):sqrt()
  elseif p == math.huge then
    result = wide:abs():amax(dims, keep)
  elseif p == -math.huge then
    result = wide:abs():amin(dims, keep)
  elseif p == 0 then
    result = wide:ne(0):sum(dims, keep):to(dtype)
  elseif p == 1 then
    result = wide:abs():sum(dims, keep)
  else
    result = (wide:abs() ^ p):sum(dims, keep) ^ (1 / p)
  end
  return result:to(dtype)
end

local function logsumexp(x, dims, keepdim, ...)
  check("logsumexp", x)
  arguments.count("logsumexp", 3, ...)
  local wide, dtype = widened(x)
  local keep = options_of("logsumexp", keepdim, {keepdim = false}).keepdim
  if x:numel() == 0 then return wide:exp():sum(dims, keep):log():to(dtype) end
  local most = wide:amax(dims, true)
  local shift = tensor.where(most:isfinite(), most, 0) -- so that inf - inf is not met
  local total = (wide - shift):exp():sum(dims, keep)
  return (total:log() + shift:reshape(total.shape)):to(dtype)
end

-- x less its largest along the dimension: exp() of it does not overflow.
local function shifted(name, x, dim)
  local wide, dtype = widened(x)
  dim = arguments.dim(name, x.ndim > 0 and x.shape or {1}, dim)
  if x:numel() == 0 then return wide, dim, dtype end
  return wide - wide:amax(dim, true), dim, dtype
end

local function softmax(x, dim, ...)
  check("softmax", x)
  arguments.count("softmax", 2, ...)
  local away, at, dtype = shifted("softmax", x, dim)
  local power = away:exp()
  return (power / power:sum(at, true)):to(dtype)
end

local function log_softmax(x, dim, ...)
  check("log_softmax", x)
  arguments.count("log_softmax", 2, ...)
  local away, at, dtype = shifted("log_softmax", x, dim)
  return (away - away:exp():sum(at, true):log()):to(dtype)
end

local function nansum(x, dims, keepdim, ...)
  check("nansum", x)
  arguments.count("nansum", 3, ...)
  return (tensor.where(x:isnan(), 0, x):sum(dims, keepdim))
end

local function nanmean(x, dims, keepdim, ...)
  check("nanmean", x)
  arguments.count("nanmean", 3, ...)
  return nansum(x, dims, keepdim) / x:isnan():logical_not():sum(dims, keepdim)
end

return {
  {"var", var,
   doc = "var(x [, dims [, keepdim | {keepdim =, correction = 1}]]): variance, over n - correction",
   example = "tensor{1, 2, 3, 4}:var()", value = "tensor(1.6667)"},
  {"std", std, doc = "std(x [, dims [, keepdim | options]]): standard deviation, see var",
   example = "tensor{1, 2, 3, 4}:std(1, {correction = 0})", value = "tensor(1.1180)"},
  {"norm", norm, doc = "norm(x [, p = 2 [, dims [, keepdim]]]): (sum of |x|^p)^(1/p), also for inf",
   example = "tensor{3, -4}:norm()", value = "tensor(5.)"},
  {"logsumexp", logsumexp, doc = "logsumexp(x [, dims [, keepdim]]): log(sum(exp(x))), no overflow",
   example = "tensor{1000, 1000}:logsumexp(1)", value = "tensor(1000.6932)"},
  {"softmax", softmax, doc = "softmax(x, dim): exp(x) as shares of its sum along a dimension",
   example = "tensor{0, 0, 1000}:softmax(1)", value = "tensor([0., 0., 1.])"},
  {"log_softmax", log_softmax, doc = "log_softmax(x, dim): log(softmax(x, dim)), exact where small",
   example = "tensor{0, 0}:log_softmax(1)", value = "tensor([-0.6931, -0.6931])"},
  {"nansum", nansum, doc = "nansum(x [, dims [, keepdim]]): the sum of those that are numbers",
   example = "tensor{1, 0/0, 2}:nansum()", value = "tensor(3.)"},
  {"nanmean", nanmean, doc = "nanmean(x [, dims [, keepdim]]): the mean of those that are numbers",
   example = "tensor{1, 0/0, 2}:nanmean()", value = "tensor(1.5000)"},
}
