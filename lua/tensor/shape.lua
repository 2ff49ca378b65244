-- Shapes: what can be said through reshape, transpose and ranges.
local _, internal = ...
local check, fail = internal.check, internal.fail

local function flatten(x, first, last)
  check("flatten", x)
  local shape, ndim = x.shape, x.ndim
  if ndim == 0 then return x:reshape(1) end
  local function dim(given, usual)
    given = given or usual
    local at = math.type(given) == "integer" and (given < 0 and ndim + 1 + given or given)
    if not at or at < 1 or at > ndim then
      fail(("flatten: dimension %s is out of range for %d dimensions"):format(given, ndim))
    end
    return at
  end
  first, last = dim(first, 1), dim(last, -1)
  if first > last then fail "flatten: the first dimension must not come after the last" end
  local size, count = {}, 1
  for d = 1, ndim do
    if d >= first and d <= last then count = count * shape[d] end
    if d < first or d > last then
      size[#size + 1] = shape[d]
    elseif d == last then
      size[#size + 1] = count
    end
  end
  return x:reshape(size)
end

return {
  {"flatten", flatten, doc = "flatten(x [, first, last]): dimensions first to last as one",
   example = "tensor.ones(2, 3):flatten()", value = "tensor([1., 1., 1., 1., 1., 1.])"},
}
