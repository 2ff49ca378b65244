-- Random tensors beyond rand() and randn(), which they are made of.  Options are those of rand():
-- dtype, device, generator.
local _, internal = ...
local tensor, check = internal.tensor, internal.check
local arguments = internal.require "tensor.arguments"
local fail, number = arguments.fail, arguments.number

local function is_floating(dtype) return internal.compute(dtype) ~= "int64" end

-- The options for rand(), drawn in this dtype, and the dtype that was asked for.
local function pass_on(name, options, dtype)
  if options ~= nil and type(options) ~= "table" then
    fail("%s: the options must be a table, not %s", name, internal.kind(options))
  end
  local passed = {}
  for key, value in pairs(options or {}) do passed[key] = value end
  passed.dtype = dtype
  return passed, options and options.dtype
end

-- Random numbers in the size of x, and in its dtype unless it is one of integers.
local function like(name, draw, x, options)
  local passed, asked = pass_on(name, options)
  passed.dtype = asked or is_floating(x.dtype) and x.dtype or "float32"
  return draw(x.shape, passed)
end

local function rand_like(x, options, ...)
  check("rand_like", x)
  arguments.count("rand_like", 2, ...)
  return (like("rand_like", tensor.rand, x, options))
end

local function randn_like(x, options, ...)
  check("randn_like", x)
  arguments.count("randn_like", 2, ...)
  return (like("randn_like", tensor.randn, x, options))
end

-- Whole numbers from low to high: rand() is in (0, 1], with 53 bits.
local function integers(name, shape, low, high, options)
  low, high = arguments.integer(name, 1, low), arguments.integer(name, 2, high)
  if high < low then fail("%s: there is no integer from %d to %d", name, low, high) end
  local many = high - low + 1
  if many <= 0 or many > 1 << 53 then
    fail("%s: from %d to %d are more than 2^53 integers", name, low, high)
  end
  local passed, dtype = pass_on(name, options, "float64")
  local steps = (tensor.rand(shape, passed) * many):ceil():to "int64" + (low - 1)
  return steps:to(dtype or "int64")
end

local function randint(low, high, size, options, ...)
  arguments.count("randint", 4, ...)
  if type(size) ~= "table" then
    fail("randint: argument 3 must be a size, a table, not %s", internal.kind(size))
  end
  return (integers("randint", size, low, high, options))
end

local function randint_like(x, low, high, options, ...)
  check("randint_like", x)
  arguments.count("randint_like", 4, ...)
  return (integers("randint_like", x.shape, low, high, options))
end

local function randperm(n, options, ...)
  arguments.count("randperm", 2, ...)
  n = arguments.integer("randperm", 1, n)
  if n < 0 then fail("randperm: size %d is negative", n) end
  local passed, dtype = pass_on("randperm", options, "float64")
  local order = tensor.rand({n}, passed):argsort()
  return dtype and order:to(dtype) or order
end

-- normal(mean, std): of tensors, broadcast; normal(mean, std, size [, options]): of numbers.
local function normal(mean, std, size, options, ...)
  arguments.count("normal", 4, ...)
  local of_numbers = internal.kind(mean) == "number" and internal.kind(std) == "number"
  if of_numbers and type(size) == "table" then
    mean, std = number("normal", 1, mean), number("normal", 2, std)
    return tensor.randn(size, options or {}) * std + mean
  end
  local tensors = {}
  for i, x in ipairs {mean, std} do
    local kind = internal.kind(x)
    if kind == "tensor" then
      tensors[#tensors + 1] = x
    elseif kind ~= "number" then
      fail("normal: argument %d must be a tensor or a number, not %s", i, kind)
    end
  end
  if #tensors == 0 then fail "normal: of two numbers it wants a size, a table, behind them" end
  local both = #tensors == 2 and tensors[1] + tensors[2] or tensors[1]
  return randn_like(both, size) * std + mean
end

-- ---- in place ----

local function normal_(x, mean, std, options, ...)
  check("normal_", x)
  arguments.count("normal_", 4, ...)
  mean, std = number("normal_", 2, mean, 0), number("normal_", 3, std, 1)
  return (x:copy_(like("normal_", tensor.randn, x, options) * std + mean))
end

local function uniform_(x, low, high, options, ...)
  check("uniform_", x)
  arguments.count("uniform_", 4, ...)
  low, high = number("uniform_", 2, low, 0), number("uniform_", 3, high, 1)
  return (x:copy_(like("uniform_", tensor.rand, x, options) * (high - low) + low))
end

local function exponential_(x, rate, options, ...)
  check("exponential_", x)
  arguments.count("exponential_", 3, ...)
  rate = number("exponential_", 2, rate, 1)
  return (x:copy_(like("exponential_", tensor.rand, x, options):log() / -rate))
end

local function bernoulli_(x, p, options, ...)
  check("bernoulli_", x)
  arguments.count("bernoulli_", 3, ...)
  if p == nil then p = 0.5 end
  if internal.kind(p) ~= "tensor" then number("bernoulli_", 2, p) end
  return (x:copy_(like("bernoulli_", tensor.rand, x, options):le(p)))
end

-- ---- choices ----

local function bernoulli(p, options, ...)
  check("bernoulli", p)
  arguments.count("bernoulli", 2, ...)
  if not is_floating(p.dtype) then
    fail("bernoulli: wants probabilities of a floating-point dtype, not %s", p.dtype)
  end
  return like("bernoulli", tensor.rand, p, options):le(p):to(p.dtype)
end

-- Without replacement: the weights divided by exponential numbers, in descending order, come as
-- they would if drawn one by one (Efraimidis and Spirakis, 2006).
local function multinomial(weights, n, replacement, options, ...)
  arguments.count("multinomial", 4, ...)
  check("multinomial", weights)
  n = arguments.integer("multinomial", 2, n)
  local ndim, shape = weights.ndim, weights.shape
  if ndim < 1 or ndim > 2 or not is_floating(weights.dtype) then
    fail("multinomial: wants weights in one or two dimensions of a floating-point dtype, not %s of "
         .. "size %s", weights.dtype, arguments.shape_text(shape))
  end
  local choices = shape[ndim]
  if n < 1 or choices < 1 or not replacement and n > choices then
    fail("multinomial: cannot draw %d of %d%s", n, choices,
         replacement and "" or " without replacement")
  end
  local wide = weights:to "float64"
  if replacement then
    shape[ndim] = n
    local sums = wide:cumsum(ndim)
    local drawn = tensor.rand(shape, (pass_on("multinomial", options, "float64")))
    return (sums:searchsorted(drawn * sums:narrow(ndim, choices, 1)))
  end
  local waits = tensor.rand(shape, (pass_on("multinomial", options, "float64"))):log() / -wide
  return (waits:argsort(ndim):narrow(ndim, 1, n):contiguous())
end

return {
  {"rand_like", rand_like, doc = "rand_like(x): uniform random numbers in the size of x",
   example = "tensor.rand_like(tensor.ones(2, 3)).shape[2]", value = "3"},
  {"randn_like", randn_like, doc = "randn_like(x): normal random numbers in the size of x",
   example = "tensor.randn_like(tensor.ones(2, 3)).shape[2]", value = "3"},
  {"randint", randint, method = false,
   doc = "randint(low, high, size [, options]): random integers, low and high included, as int64",
   example = "tensor.randint(7, 7, {3})", value = "tensor([7, 7, 7])"},
  {"randint_like", randint_like, doc = "randint_like(x, low, high): likewise, in the size of x",
   example = "tensor.randint_like(tensor.ones(2), 3, 3)", value = "tensor([3, 3])"},
  {"normal", normal, method = false,
   doc = "normal(mean, std [, size]): normal random numbers of tensors of means and deviations",
   example = "tensor.normal(5, 0, {2})", value = "tensor([5., 5.])"},
  {"normal_", normal_, doc = "normal_(x [, mean = 0 [, std = 1]]): fills x with normal numbers",
   example = "tensor.zeros(2):normal_(3, 0)", value = "tensor([3., 3.])"},
  {"uniform_", uniform_, doc = "uniform_(x [, low = 0 [, high = 1]]): fills x with uniform numbers",
   example = "tensor.zeros(2):uniform_(3, 3)", value = "tensor([3., 3.])"},
  {"exponential_", exponential_, doc = "exponential_(x [, rate = 1]): fills x with waiting times",
   example = "tensor.zeros(2):exponential_():ge(0)", value = "tensor([True, True])"},
  {"bernoulli_", bernoulli_, doc = "bernoulli_(x [, p = 0.5]): fills x with 1 (probability p) or 0",
   example = "tensor.zeros(2):bernoulli_(1)", value = "tensor([1., 1.])"},
  {"bernoulli", bernoulli, doc = "bernoulli(p): 1 with the probabilities in p, or 0",
   example = "tensor.bernoulli(tensor{0, 1})", value = "tensor([0., 1.])"},
  {"randperm", randperm, method = false, doc = "randperm(n): the integers 1 to n in random order",
   example = "tensor.randperm(5):sum()", value = "tensor(15)"},
  {"multinomial", multinomial,
   doc = "multinomial(weights, n [, replacement]): n positions, drawn in proportion to weights",
   example = "tensor.multinomial(tensor{0, 0, 1}, 1)", value = "tensor([3])"},
}
