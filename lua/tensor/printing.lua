-- How tensors print, as the user wishes: the options of lua/tensor/format.lua.
local _, internal = ...
local arguments = internal.require "tensor.arguments"
local options = internal.require "tensor.format".options
local fail = arguments.fail

-- PyTorch's, by name.
local PROFILES = {
  default = {precision = 4, threshold = 1000, edgeitems = 3, linewidth = 80},
  short = {precision = 2, threshold = 1000, edgeitems = 2, linewidth = 80},
  full = {precision = 4, threshold = math.huge, edgeitems = 3, linewidth = 80},
}

-- What is asked of an option's value, and how it is said. Lua's string.format writes at most 99
-- decimals.
local function count(most)
  return function(value)
    local integer = type(value) == "number" and math.tointeger(value)
    return integer and integer >= 0 and integer <= (most or integer)
  end
end

local function at_least(least)
  return function(value) return type(value) == "number" and value >= least end
end

local CHECKS = {
  {"precision", count(99), "an integer from 0 to 99"},
  {"threshold", at_least(0), "a number, 0 or more"},
  {"edgeitems", count(), "an integer, 0 or more"},
  {"linewidth", at_least(1), "a number, 1 or more"},
  {"sci_mode", function(value) return type(value) == "boolean" end, "true or false"},
  {"profile", function(value) return type(value) == "string" and PROFILES[value] end,
   "'default', 'short' or 'full'"},
}

local known = {}
for _, check in ipairs(CHECKS) do known[check[1]] = true end

-- Everything is checked before anything is changed.
local function set_printoptions(given, ...)
  if type(given) ~= "table" then
    fail("set_printoptions: argument 1 must be a table of options, not %s", internal.kind(given))
  end
  arguments.count("set_printoptions", 1, ...)
  local values = {}
  for name, value in next, given do
    if not known[name] then
      fail("set_printoptions: unknown option '%s': precision, threshold, edgeitems, linewidth, " ..
           "sci_mode or profile", arguments.describe(name))
    end
    values[name] = value
  end
  for _, check in ipairs(CHECKS) do
    local name, is_right, wanted = table.unpack(check)
    if values[name] ~= nil and not is_right(values[name]) then
      fail("set_printoptions: %s must be %s, not %s", name, wanted,
           arguments.describe(values[name]))
    end
  end
  for name, value in pairs(PROFILES[values.profile] or {}) do options[name] = value end
  for name in pairs(PROFILES.default) do
    if values[name] ~= nil then options[name] = math.tointeger(values[name]) or values[name] end
  end
  options.sci_mode = values.sci_mode -- as in PyTorch, whose choice comes back when none is given
end

local function get_printoptions(...)
  arguments.count("get_printoptions", 0, ...)
  local copy = {}
  for name, value in pairs(options) do copy[name] = value end
  return copy
end

return {
  {"set_printoptions", set_printoptions, method = false,
   doc = "set_printoptions{precision =, threshold =, edgeitems =, linewidth =, sci_mode =, " ..
         "profile =}: how tensors print; profile is 'default', 'short' or 'full'",
   example = "tensor.set_printoptions{profile = 'default'}", value = "nil"},
  {"get_printoptions", get_printoptions, method = false,
   doc = "get_printoptions(): a table of them, as set_printoptions takes it",
   example = "tensor.get_printoptions().precision", value = "4"},
}
