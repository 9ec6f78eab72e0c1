// Package group says which pods belong together that no Run made, and what Run stands for them (R40, R41): from what
// controllers write on pods, and from the objects that these are made for. It is pure. One way serves all kinds: what
// differs between them is in two tables.
package group
