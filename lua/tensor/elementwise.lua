-- Element-wise functions of several steps: the queue joins them into one pass.
local _, internal = ...
local tensor, check = internal.tensor, internal.check
local arguments = internal.require "tensor.arguments"
local fail, number = arguments.fail, arguments.number

-- A tensor or a number.
local function operand(name, argument, value)
  local kind = internal.kind(value)
  if kind ~= "tensor" and kind ~= "number" then
    fail("%s: argument %d must be a tensor or a number, not %s", name, argument, kind)
  end
  return value
end

local function clamp(x, low, high, ...)
  check("clamp", x)
  arguments.count("clamp", 3, ...)
  if low == nil and high == nil then fail "clamp: wants a lower or an upper bound, or both" end
  if low ~= nil then x = x:maximum(operand("clamp", 2, low)) end
  if high ~= nil then x = x:minimum(operand("clamp", 3, high)) end
  return x
end

local function lerp(x, y, weight, ...)
  check("lerp", x, y)
  arguments.count("lerp", 3, ...)
  return x + (y - x) * operand("lerp", 3, weight)
end

local function addcmul(x, a, b, value, ...)
  check("addcmul", x, a, b)
  arguments.count("addcmul", 4, ...)
  value = number("addcmul", 4, value, 1)
  return x + (value == 1 and a * b or a * b * value)
end

local function addcdiv(x, a, b, value, ...)
  check("addcdiv", x, a, b)
  arguments.count("addcdiv", 4, ...)
  value = number("addcdiv", 4, value, 1)
  return x + (value == 1 and a / b or a / b * value)
end

local function leaky_relu(x, slope, ...)
  check("leaky_relu", x)
  arguments.count("leaky_relu", 2, ...)
  return tensor.where(x:lt(0), x * number("leaky_relu", 2, slope, 0.01), x)
end

local function elu(x, alpha, ...)
  check("elu", x)
  arguments.count("elu", 2, ...)
  return tensor.where(x:lt(0), x:expm1() * number("elu", 2, alpha, 1), x)
end

local function gelu(x, approximate, ...)
  check("gelu", x)
  arguments.count("gelu", 2, ...)
  if approximate == "tanh" then -- Hendrycks and Gimpel, 2016
    return x * 0.5 * (((x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)):tanh() + 1)
  elseif approximate ~= nil and approximate ~= "none" then
    fail("gelu: approximate must be 'none' or 'tanh', not %s", arguments.describe(approximate))
  end
  return x * 0.5 * ((x * math.sqrt(0.5)):erf() + 1)
end

-- Above the threshold it is x, to which log(1 + e^x) comes close before e^x overflows.
local function softplus(x, beta, threshold, ...)
  check("softplus", x)
  arguments.count("softplus", 3, ...)
  beta = number("softplus", 2, beta, 1)
  local scaled = beta == 1 and x or x * beta
  local soft = scaled:exp():log1p()
  return tensor.where(scaled:gt(number("softplus", 3, threshold, 20)), x,
                      beta == 1 and soft or soft / beta)
end

local LARGEST = {float16 = 65504.0, bfloat16 = 0x1.fep127, float32 = 0x1.fffffep127,
                 float64 = 0x1.fffffffffffffp1023}

local function nan_to_num(x, nan, above, below, ...)
  check("nan_to_num", x)
  arguments.count("nan_to_num", 4, ...)
  local largest = LARGEST[x.dtype]
  if not largest then return x:clone() end -- integers are numbers already
  nan = number("nan_to_num", 2, nan, 0)
  above, below = number("nan_to_num", 3, above, largest), number("nan_to_num", 4, below, -largest)
  local finite = tensor.where(x:eq(math.huge), above, tensor.where(x:eq(-math.huge), below, x))
  return tensor.where(x:isnan(), nan, finite)
end

local function scaled_by(name, factor)
  return function(x, ...)
    check(name, x)
    arguments.count(name, 1, ...)
    return x * factor
  end
end

local rows = {
  {"clamp", clamp, doc = "clamp(x, low, high): x between two bounds, numbers or tensors; nil: none",
   example = "tensor.clamp(tensor{-2, 0.5, 3}, -1, 1)",
   value = "tensor([-1.0000,  0.5000,  1.0000])"},
  {"lerp", lerp, doc = "lerp(x, y, w): x + (y - x) * w",
   example = "tensor.lerp(tensor{0, 10}, tensor{10, 20}, 0.5)", value = "tensor([ 5., 15.])"},
  {"addcmul", addcmul, doc = "addcmul(x, a, b [, value]): x + a * b * value",
   example = "tensor.addcmul(tensor{1, 1}, tensor{2, 3}, tensor{4, 5})",
   value = "tensor([ 9., 16.])"},
  {"addcdiv", addcdiv, doc = "addcdiv(x, a, b [, value]): x + a / b * value",
   example = "tensor.addcdiv(tensor{1, 1}, tensor{2, 3}, tensor{4, 6}, 2)",
   value = "tensor([2., 2.])"},
  {"leaky_relu", leaky_relu, doc = "leaky_relu(x [, slope = 0.01]): x, times slope where negative",
   example = "tensor.leaky_relu(tensor{-2, 3}, 0.5)", value = "tensor([-1.,  3.])"},
  {"elu", elu, doc = "elu(x [, alpha = 1]): x where positive, alpha * (exp(x) - 1) elsewhere",
   example = "tensor.elu(tensor{-1, 2})", value = "tensor([-0.6321,  2.0000])"},
  {"gelu", gelu, doc = "gelu(x [, 'tanh']): x times the normal distribution's share below x",
   example = "tensor.gelu(tensor{-1, 1})", value = "tensor([-0.1587,  0.8413])"},
  {"softplus", softplus,
   doc = "softplus(x [, beta = 1 [, threshold = 20]]): log(1 + exp(beta x)) / beta",
   example = "tensor.softplus(tensor{0, 30})", value = "tensor([ 0.6931, 30.0000])"},
  {"nan_to_num", nan_to_num,
   doc = "nan_to_num(x [, nan = 0 [, inf [, -inf]]]): with numbers for what is none or infinite",
   example = "tensor.nan_to_num(tensor{0/0, 1/0, 2}, 0, 9)", value = "tensor([0., 9., 2.])"},
  {"deg2rad", scaled_by("deg2rad", math.pi / 180), doc = "degrees as radians",
   example = "tensor.deg2rad(tensor{180})", value = "tensor([3.1416])"},
  {"rad2deg", scaled_by("rad2deg", 180 / math.pi), doc = "radians as degrees",
   example = "tensor.rad2deg(tensor{math.pi})", value = "tensor([180.])"},
}

-- Each has a form that works in place, as those of ops.def have.
local IN_PLACE = {}
for _, row in ipairs(rows) do
  local name, f = row[1], row[2]
  IN_PLACE[#IN_PLACE + 1] = {
    name .. "_",
    function(x, ...)
      check(name .. "_", x)
      return (x:copy_(f(x, ...)))
    end,
    doc = name .. " in place: x takes the result", example = row.example:gsub(name, name .. "_", 1),
    value = row.value,
  }
end
return table.move(IN_PLACE, 1, #IN_PLACE, #rows + 1, rows)
