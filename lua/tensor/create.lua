-- Tensors made from others' values.
local _, internal = ...
local arguments = internal.require "tensor.arguments"
local check, fail = internal.check, arguments.fail

local function vander(x, n, increasing, ...)
  check("vander", x)
  arguments.count("vander", 3, ...)
  if x.ndim ~= 1 then fail("vander: wants 1 dimension, not %d", x.ndim) end
  n = n == nil and #x or arguments.integer("vander", 2, n)
  if n < 0 then fail("vander: %d columns are less than 0", n) end
  if increasing ~= nil and type(increasing) ~= "boolean" then
    fail("vander: argument 3 must be true or false, not %s", arguments.describe(increasing))
  end
  local out = internal.empty("vander", x.dtype, {#x, n})
  if out:numel() == 0 then return out end
  local options = {dtype = x.dtype}
  local powers = increasing and internal.tensor.arange(0, n - 1, options)
                 or internal.tensor.arange(n - 1, 0, -1, options)
  return out:copy_(x:unsqueeze(2)):pow_(powers)
end

return {
  {"vander", vander,
   doc = "vander(x, n = #x, increasing = false): powers of a vector's elements, a column for each",
   example = "tensor{2, 3}:vander(3)", value = "tensor([[4., 2., 1.],\n        [9., 3., 1.]])"},
}
