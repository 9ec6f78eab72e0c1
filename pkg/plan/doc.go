// Package plan decides, for one gang at one instant, where it goes and who pays: cover and pack together. It is pure.
package plan
