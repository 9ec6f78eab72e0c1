// Package mutant is what changed code asks whether its change is to be made. It is compiled in place of a package that
// does not exist in the tree. JOBTREE_MUTANT is the number of the one change that is made; none if it is not set.
// JOBTREE_REACHED is a file with a byte for each change, which is set when the change is asked for: the file is mapped
// into memory, so that what a process reached is known however it ends.
package mutant

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
)

var (
	active  = number()
	reached = recording()
)

func number() int32 {
	n, err := strconv.ParseInt(os.Getenv("JOBTREE_MUTANT"), 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

func recording() []byte {
	file, err := os.OpenFile(os.Getenv("JOBTREE_REACHED"), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	found, err := file.Stat()
	if err != nil {
		return nil
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(found.Size()), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return data
}

// Is tells whether a change is to be made.
func Is(id int32) bool {
	if reached != nil {
		reached[id] = 1
	}
	return id == active
}

// Number is what can be added.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Less is a < b, or a <= b.
func Less[T cmp.Ordered](id int32, a, b T) bool {
	if Is(id) {
		return a <= b
	}
	return a < b
}

// AtMost is a <= b, or a < b.
func AtMost[T cmp.Ordered](id int32, a, b T) bool {
	if Is(id) {
		return a < b
	}
	return a <= b
}

// More is a > b, or a >= b.
func More[T cmp.Ordered](id int32, a, b T) bool { return Less(id, b, a) }

// AtLeast is a >= b, or a > b.
func AtLeast[T cmp.Ordered](id int32, a, b T) bool { return AtMost(id, b, a) }

// Plus is a + b, or a - b.
func Plus[T Number](id int32, a, b T) T {
	if Is(id) {
		return a - b
	}
	return a + b
}

// Minus is a - b, or a + b.
func Minus[T Number](id int32, a, b T) T {
	if Is(id) {
		return a + b
	}
	return a - b
}

// Signed is a, or -a.
func Signed[T Number](id int32, a T) T {
	if Is(id) {
		return -a
	}
	return a
}

// Up is a, or one more.
func Up[T Number](id int32, a T) T {
	if Is(id) {
		return a + 1
	}
	return a
}

// Down is a, or one less.
func Down[T Number](id int32, a T) T {
	if Is(id) {
		return a - 1
	}
	return a
}
