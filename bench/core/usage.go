// SPDX-License-Identifier: Apache-2.0

package core

import "fmt"

// usageError is a mistake on the command line.
type usageError struct{ error }

// Usage marks the error.
func (usageError) Usage() {}

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
