-- Arguments of the functions that are written in Lua: the checks and sentences of the C ones
-- (src/frontend/arguments.h).  Each begins with the function's name.
local _, internal = ...
local kind, rawfail = internal.kind, internal.fail

local M = {}

local function fail(format, ...) return rawfail(format:format(...)) end
M.fail = fail

-- A value as a message names it: text, numbers and booleans themselves, others by type.
local function describe(value)
  local type = type(value)
  if type == "string" or type == "number" or type == "boolean" then return tostring(value) end
  return kind(value)
end

M.describe = describe

local function is_nothing(...)
  for i = 1, select("#", ...) do
    if select(i, ...) ~= nil then return false end
  end
  return true
end

-- `...` is what the function was given behind its `most` arguments.
function M.count(name, most, ...)
  if not is_nothing(...) then
    fail("%s: %d arguments are too many: at most %d", name, most + select("#", ...), most)
  end
end

-- The integer that a number is, or nil.
local function to_integer(value) return type(value) == "number" and math.tointeger(value) or nil end

function M.integer(name, argument, value)
  local integer = to_integer(value)
  if integer then return integer end
  return fail("%s: argument %d must be an integer, not %s", name, argument,
              type(value) == "number" and value or kind(value))
end

function M.shape_text(shape) return #shape == 0 and "()" or table.concat(shape, "x") end

function M.size_text(x) return M.shape_text(x.shape) end

-- A number, or the usual one where there is one and none was given.
function M.number(name, argument, value, usual)
  if value == nil and usual then return usual end
  if type(value) == "number" then return value end
  return fail("%s: argument %d must be a number, not %s", name, argument, kind(value))
end

-- The values of the options `names`, which are what stands behind the first `before` arguments: a
-- table of options, or arguments in that order.
function M.options(name, before, names, first, ...)
  if type(first) ~= "table" then
    local given = table.pack(first, ...)
    M.count(name, before + #names, table.unpack(given, #names + 1, given.n))
    return first, ...
  end
  M.count(name, before + 1, ...)
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

-- A dimension, counted from the end when negative, as one from 1.
function M.dim(name, shape, value)
  local dim = to_integer(value)
  if not dim then fail("%s: dimension %s is not an integer", name, describe(value)) end
  local at = dim < 0 and #shape + 1 + dim or dim
  if at < 1 or at > #shape then
    fail("%s: dimension %d is out of range for a tensor of size %s", name, dim, M.shape_text(shape))
  end
  return at
end

-- One value or a table of them, as a table of their own, and how many they are: some may be nil.
function M.list(value)
  if type(value) ~= "table" then return {value}, 1 end
  local list = {}
  for i = 1, rawlen(value) do list[i] = rawget(value, i) end
  return list, rawlen(value)
end

-- Integers that are at least `least`: one, or a table; `what` is what they are called.
function M.integers(name, what, value, least)
  local list, n = M.list(value)
  if value == nil then fail("%s: %s is missing", name, what) end
  for i = 1, n do
    local integer = to_integer(list[i])
    if not integer then fail("%s: %s %s is not an integer", name, what, describe(list[i])) end
    if least and integer < least then
      fail("%s: %s %d is less than %d", name, what, integer, least)
    end
    list[i] = integer
  end
  return list
end

-- At least one open tensor, in a table that is argument 1.
function M.tensors(name, value)
  if type(value) ~= "table" then
    fail("%s: argument 1 must be a table of tensors, not %s", name,
         kind(value) == "closed tensor" and "a tensor that has been closed" or kind(value))
  end
  local list, n = M.list(value)
  if n == 0 then fail("%s: wants at least one tensor", name) end
  for i = 1, n do
    local is = kind(list[i])
    if is == "closed tensor" then fail("%s: tensor %d has been closed", name, i) end
    if is ~= "tensor" then fail("%s: element %d of the table is no tensor but %s", name, i, is) end
  end
  return list
end

-- Sizes before and behind a dimension, multiplied.  Those of a tensor, so they fit.
function M.around(shape, dim)
  local before, behind = 1, 1
  for d = 1, dim - 1 do before = before * shape[d] end
  for d = dim + 1, #shape do behind = behind * shape[d] end
  return before, behind
end

return M
