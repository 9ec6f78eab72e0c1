// Package restart decides what becomes of ranks that have died by their program's doing (R34): which deaths are one
// incident, who is blamed for it, whether the rank is started again where it was or elsewhere, and when the Run has had
// enough of that.
package restart
