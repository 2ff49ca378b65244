-- The functions of the library that are written in Lua: loaded when the first of them is asked for.
--
-- A module returns rows, each {name, function, doc =, example =, value =}: as in ops.def, the
-- example is a Lua expression and `value` what printing it gives.  A row is a function of the
-- library and a method of tensors; `method = false` and `library = false` leave one of them out.  A
-- name with a dot (linalg.solve) is a function in a table of that name, and no method.  A row
-- without a function is that of one in C, which must be there.
local _, internal = ...

local MODULES = {"tensor.native", "tensor.shape", "tensor.join", "tensor.create",
                 "tensor.elementwise", "tensor.statistics", "tensor.random", "tensor.order",
                 "tensor.products", "tensor.einsum", "tensor.linalg", "tensor.files",
                 "tensor.printing", "tensor.help"}

local rows = {}

local function place(row)
  local name, f = row[1], row[2]
  if f then internal.names[f] = name end
  local group, short = name:match "^(%w+)%.(.+)$"
  if group then
    local members = rawget(internal.tensor, group) or {}
    members[short] = f
    rawset(internal.tensor, group, members)
    return
  end
  if not f then
    assert(rawget(internal.tensor, name), name)
    return
  end
  if row.library ~= false then rawset(internal.tensor, name, f) end
  if row.method ~= false then rawset(internal.methods, name, f) end
end

for _, module in ipairs(MODULES) do
  for _, row in ipairs(internal.require(module)) do
    place(row)
    row.module = module
    rows[#rows + 1] = row
  end
end

return rows
