package book_test

import (
	"pgregory.net/rapid"
)

// classAny has a PriorityClass come, go or have another value.
func (w *world) classAny(t *rapid.T) {
	name := rapid.SampledFrom([]string{"low", "high", "gone"}).Draw(t, "class")
	if w.classes[name] != 0 && rapid.Bool().Draw(t, "goes") {
		delete(w.classes, name)
		w.Book.DropPriorityClass(name)
		return
	}
	w.class(name, rapid.Int32Range(1, 5).Draw(t, "value"))
}

// checkOrder asserts that everybody who waits is found at the place that it has, and that nobody has lost by others'
// priorities.
func (w *world) checkOrder() {
	for _, wrong := range w.Book.OutOfOrder() {
		w.t.Fatal(wrong)
	}
}
