// Package brake reads and writes what an administrator says about cuts (R36): the ConfigMap jobtree-cuts in the
// scheduler's namespace. It is pure. What does not parse brakes: a typing error cuts nobody.
package brake
