-- Arguments that have names in PyTorch: options in a table here, or arguments in that order.
local _, internal = ...

local M = {}

local function fail(format, ...) return internal.fail(format:format(...)) end
M.fail = fail

-- A value as a message names it: text, numbers and booleans themselves, others by type.
local function describe(value)
  local kind = type(value)
  return (kind == "string" or kind == "number" or kind == "boolean") and tostring(value) or kind
end
M.describe = describe

function M.size_text(x) return x.ndim == 0 and "()" or table.concat(x.shape, "x") end

-- `...` is what the function `name` was given behind its first `before` arguments, of which it can
-- use `most` more.
local function count(name, before, most, ...)
  local given = select("#", ...)
  while given > most and select(given, ...) == nil do given = given - 1 end
  if given > most then
    fail("%s: %d arguments are too many: at most %d", name, before + given, before + most)
  end
end
M.count = count

-- The values of the options `names`, which are what stands behind the first `before` arguments.
function M.options(name, before, names, first, ...)
  if type(first) ~= "table" then
    count(name, before, #names, first, ...)
    return first, ...
  end
  count(name, before, 1, first, ...)
  local values, known = {}, {}
  for i, option in ipairs(names) do
    values[i] = first[option]
    known[option] = true
  end
  for option in pairs(first) do
    if not known[option] then
      fail("%s: unknown option '%s': %s", name, describe(option), table.concat(names, " or "))
    end
  end
  return table.unpack(values, 1, #names)
end

return M
