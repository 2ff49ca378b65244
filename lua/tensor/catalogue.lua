-- All functions of the library in sections, from the table of operators (src/tensor/ops.def) and
-- the rows of the functions in Lua: what help shows and docs/reference.md lists.
--
-- An entry has name, signature, doc, example and value, and
--   notes  what to know of it beside that: "waits" or "may wait", "a view", how else it is written
--   sign   the operator of Lua that calls it, if there is one
local _, internal = ...

-- Where a function belongs: said by its name, or else by the family of its operator or the module
-- that has its row.
local SECTIONS = {
  {"Creation", from = "fill generate allocate tensor.create",
   names = "zeros_like ones_like full_like empty_like logspace clone"},
  {"Element-wise", from = "elementwise tensor.elementwise", names = "to"},
  {"Reductions", from = "reduce tensor.statistics", names = "median trace mode quantile"},
  {"Shape", from = "copy tensor.native tensor.shape tensor.join", names = ""},
  {"Indexing", from = "index",
   names = "select narrow masked_fill masked_fill_ fill_ zero_ copy_ diagonal tril tril_ triu " ..
           "triu_"},
  {"Order", from = "along tensor.order", names = ""},
  {"Linear algebra", from = "matmul tensor.products tensor.einsum tensor.linalg", names = ""},
  {"Random", from = "tensor.random",
   names = "rand randn manual_seed initial_seed generator get_rng_state set_rng_state"},
  {"Files", from = "tensor.files", names = ""},
  {"Waiting and control", from = "compare tensor.printing tensor.help",
   names = "item totable tostring wait is_ready sync benchmark compile set_num_threads " ..
           "get_num_threads fusion memory empty_cache"},
}

local SIGNS = {__unm = "-", __bnot = "~", __add = "+", __sub = "-", __mul = "*", __div = "/",
               __idiv = "//", __mod = "%", __pow = "^", __band = "&", __bor = "|", __bxor = "~",
               __shl = "<<", __shr = ">>"}

local by_name, by_origin = {}, {}
for _, section in ipairs(SECTIONS) do
  for word in section.names:gmatch "%S+" do by_name[word] = section end
  for word in section.from:gmatch "%S+" do by_origin[word] = section end
end

-- A doc that begins with a call and a colon has the signature there; of element-wise operators it
-- is known.
local function split(row)
  local signature, rest = row.doc:match "^([%w_.:]+%b()): (.+)$"
  if not signature then signature, rest = row.doc:match "^([%w_.:]+%b{}): (.+)$" end
  if signature then return signature, rest end
  local operands = row.arity and ({"(x)", "(x, y)", "(x, y, z)"})[row.arity] or ""
  return row.name .. operands, row.doc
end

-- How a doc says that only some arguments make a function wait.
local SOMETIMES = {"waits where", "waits without", "waits for masks", "where .- it waits"}

local function waiting(text)
  if not text:find "%f[%a]waits%f[%A]" then return nil end
  for _, pattern in ipairs(SOMETIMES) do
    if text:find(pattern) then return "may wait" end
  end
  return "waits"
end

local function notes_of(entry)
  local notes = {}
  local text = entry.signature .. " " .. entry.doc
  notes[1] = waiting(text)
  if text:find "%f[%a]views?%f[%A]" then
    local may_copy = text:find("if it can be", 1, true)
    notes[#notes + 1] = may_copy and "a view or a copy" or "a view"
  end
  local in_place = entry.name .. "_"
  if rawget(internal.tensor, in_place) then
    notes[#notes + 1] = ("in place: `%s`"):format(in_place)
  end
  if entry.sign then notes[#notes + 1] = ("operator: `%s`"):format(entry.sign) end
  return notes
end

local function entry_of(row, origin)
  local entry = {name = row.name, example = row.example, value = row.value,
                 sign = SIGNS[row.metamethod]}
  entry.signature, entry.doc = split(row)
  entry.notes = notes_of(entry)
  return entry, by_name[row.name] or by_origin[origin] or SECTIONS[#SECTIONS]
end

-- The sections, each {title =, entries...} in the order of the names.
local function build()
  local rows = internal.require "tensor.functions" -- first: notes look at what is there
  local list, found = {}, {}
  for i, section in ipairs(SECTIONS) do
    list[i] = {title = section[1]}
    found[section] = list[i]
  end
  local function add(row, origin)
    local entry, section = entry_of(row, origin)
    table.insert(found[section], entry)
  end
  for _, row in ipairs(internal.operators()) do add(row, row.family) end
  for _, row in ipairs(rows) do
    add({name = row[1], doc = row.doc, example = row.example, value = row.value}, row.module)
  end
  for _, section in ipairs(list) do
    table.sort(section, function(a, b) return a.name < b.name end)
  end
  return list
end

local sections

-- Built when first asked for: then all functions are there.
return function()
  sections = sections or build()
  return sections
end
