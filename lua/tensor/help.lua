-- help([topic]): what functions there are, and what one does.
local _, internal = ...
local arguments = internal.require "tensor.arguments"

local WIDTH = 80

-- What others call it, where the letters are no help.
local ELSEWHERE = {
  ["repeat"] = "tile", ["and"] = "logical_and", ["or"] = "logical_or", ["not"] = "logical_not",
  astype = "to", clip = "clamp", concatenate = "cat", copy = "clone",
  expand_dims = "unsqueeze", multiply = "mul", numpy = "totable", power = "pow",
  seed = "manual_seed", subtract = "sub", synchronize = "sync", tolist = "totable",
}

local function catalogue() return internal.require "tensor.catalogue"() end

local function each(f)
  for _, section in ipairs(catalogue()) do
    for _, entry in ipairs(section) do f(entry, section) end
  end
end

-- Words in lines of at most WIDTH columns, each indented.
local function wrap(words)
  local lines, line = {}, " "
  for _, word in ipairs(words) do
    if #line + 1 + #word > WIDTH then
      lines[#lines + 1], line = line, " "
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function overview()
  local parts = {}
  for i, section in ipairs(catalogue()) do
    local names = {}
    for j, entry in ipairs(section) do names[j] = entry.name end
    parts[i] = section.title .. "\n" .. wrap(names)
  end
  return table.concat(parts, "\n") ..
         "\nhelp \"Shape\" has a line for each function of a section, help \"softmax\" all of one."
end

local function section_text(section)
  local lines = {section.title}
  for _, entry in ipairs(section) do
    lines[#lines + 1] = ("  %s: %s"):format(entry.signature, entry.doc)
  end
  return table.concat(lines, "\n")
end

local function entry_text(entry)
  local notes = #entry.notes > 0 and " (" .. table.concat(entry.notes, ", "):gsub("`", "") .. ")"
  return ("%s: %s%s\n> %s\n%s"):format(entry.signature, entry.doc, notes or "", entry.example,
                                       entry.value)
end

-- How many letters to change, leave out or put in to make one word of the other.
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local change = diagonal + (a:byte(i) == b:byte(j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(change, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

local NEAR = 5 -- names at most

-- The names that come closest to a word, then those that have it in them.
local function near(word)
  local found = {}
  word = word:match "[^.]*$"
  local most = #word < 4 and 1 or 2
  local least = most
  each(function(entry)
    local short = entry.name:match "[^.]+$"
    local away = distance(word, short)
    if away < least then least = away end
    if away > most then away = #word > 2 and entry.name:find(word, 1, true) and most + 1 end
    if away then found[#found + 1] = {entry.name, away} end
  end)
  table.sort(found, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[1] < b[1]
  end)
  local names = {}
  for _, pair in ipairs(found) do
    if #names < NEAR and (pair[2] == least or pair[2] > most) then names[#names + 1] = pair[1] end
  end
  return names
end

local function unknown(word)
  local shown = #word <= 40 and word or word:sub(1, 40) .. "..."
  local names = ELSEWHERE[word] and {ELSEWHERE[word]} or near(word:sub(1, 40):lower())
  local hint = #names > 0 and "perhaps " .. table.concat(names, ", ") or "help() lists them all"
  return ("help: there is no function '%s': %s"):format(shown, hint)
end

-- The text on a name, with or without what it is called on; on a sign; or on a section.
local function text_on(topic)
  local word = topic:gsub("^x[:.]", ""):gsub("^tensor[:.]", "")
  local texts = {}
  each(function(entry)
    if entry.name == word or entry.sign == word then texts[#texts + 1] = entry_text(entry) end
  end)
  if #texts > 0 then return table.concat(texts, "\n\n") end
  for _, section in ipairs(catalogue()) do
    if section.title:lower() == word:lower() then return section_text(section) end
  end
  local operator = word:match "^(.+)_$"
  return operator and rawget(internal.tensor, word) and text_on(operator) or unknown(topic)
end

-- The name of a function of the library or a method.
local function name_of(f)
  for _, names in ipairs {internal.tensor, internal.methods} do
    for name, value in next, names do
      if value == f then return name end
      if type(value) == "table" then
        for member, function_ in next, value do
          if function_ == f then return name .. "." .. member end
        end
      end
    end
  end
end

local function help(topic, ...)
  arguments.count("help", 1, ...)
  local text
  if topic == nil or topic == internal.tensor then
    text = overview()
  elseif type(topic) == "string" then
    text = text_on(topic)
  elseif type(topic) == "function" then
    local name = name_of(topic)
    text = name and text_on(name) or "help: this is no function of the library: help() lists all"
  else
    arguments.fail("help: argument 1 must be a function or its name, not %s", internal.kind(topic))
  end
  _G.print(text) -- the script may have put its own there
end

return {
  text = text_on, -- for the reference
  {"help", help, method = false,
   doc = "help([topic]): prints the list of functions, or what one or a section of them does",
   example = "tensor.help('sqrt')", value = "nil"},
}
