package dashboard

import (
	"bytes"
	"fmt"
)

// VerifyPage returns one file that checks records of the lottery in a browser, also when it is opened from disk: it
// loads nothing.
func VerifyPage() []byte {
	page, checks, shows := read("verify.html"), read("verify.js"), read("verify-page.js")
	page = bytes.Replace(page, []byte(`<script type="module" src="verify-page.js"></script>`),
		fmt.Appendf(nil, "<script type=\"module\">\n%s%s</script>", checks, imported(shows)), 1)
	return bytes.Replace(page, []byte(`<link rel="stylesheet" href="style.css">`),
		fmt.Appendf(nil, "<style>\n%s</style>", read("style.css")), 1)
}

// read returns a file of the page.
func read(name string) []byte {
	data, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is built in
	}
	return data
}

// imported returns a module without what it imports, which stands before it.
func imported(module []byte) []byte {
	var out []byte
	for _, line := range bytes.SplitAfter(module, []byte("\n")) {
		if !bytes.HasPrefix(line, []byte("import ")) {
			out = append(out, line...)
		}
	}
	return out
}
