-- The text of docs/reference.md, which `make docs` writes: all functions of the library, in the
-- sections of the catalogue.
local _, internal = ...

local HEAD = [[
# Reference

All functions, with an example of each and what it prints. `make docs` writes this page from the
table of operators (`src/tensor/ops.def`) and the rows of the functions in Lua (`lua/tensor/`);
the tests run every example. `tensor.help()` shows the same in the program:

```lua
tensor.help "cumsum"
```

```output
@HELP@
```

- A function `f(x, ...)` is also a method: `tensor.sqrt(x)` or `x:sqrt()`. Those that are
  given no tensor first (sizes, a path, a table of tensors, a setting) are functions only.
- `[, y]` may be left out; `y = 1` is what it is then. `dims` is one dimension or a table of them,
  and nothing for all; names in braces are options, which come last, in one table. Those that make
  tensors take `{dtype =, device =}` there; random ones also `{generator =}`.
- Indices and dimensions count from 1, and from -1 at the end.
- *waits*: the function returns when the values that it needs are there (or raises why they are
  not). One that *may wait* does so for some arguments, as is said. All others return at once.
- *a view* shares the memory of the tensor that it was made from.
- *in place: `sqrt_`*: there is a second function whose result overwrites its first operand, and
  which returns that.

`tensor{...}` makes a tensor of nested tables of numbers or booleans. `x.shape` (a table), `x.ndim`,
`x.dtype`, `x.device` and `#x` (the first size) never wait. `x[key]` is `index(x, key)`: an integer
selects; `{first, last, step}` in a table of such is a range, `{}` a whole dimension; a tensor of
integers or booleans picks. `x[key] = value` writes. Coming from PyTorch or NumPy, see
[from-pytorch.md](from-pytorch.md).
]]

local function entry_text(entry)
  local notes = #entry.notes > 0 and ("  \n*%s*"):format(table.concat(entry.notes, ", ")) or ""
  return ("**`%s`**  \n%s%s\n\n```\n> %s\n%s\n```\n"):format(entry.signature, entry.doc, notes,
                                                            entry.example, entry.value)
end

local function anchor(title) return "#" .. title:lower():gsub(" ", "-") end

return function()
  local sections = internal.require "tensor.catalogue"()
  local links, parts = {}, {}
  for i, section in ipairs(sections) do
    links[i] = ("[%s](%s)"):format(section.title, anchor(section.title))
    parts[#parts + 1] = "## " .. section.title .. "\n"
    for _, entry in ipairs(section) do parts[#parts + 1] = entry_text(entry) end
  end
  local shown = internal.require "tensor.help".text "cumsum"
  local head = HEAD:gsub("@HELP@", function() return shown end)
  return head .. "\n" .. table.concat(links, " · ") .. "\n\n" .. table.concat(parts, "\n")
end
