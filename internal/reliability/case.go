// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Case is one bad input or fault.
type Case struct {
	// ID is the case's name in the list: B1, F12. A letter after it distinguishes parts of one case.
	ID   string
	What string
	// Own is set if the case starts its schedulers itself, with Ground.Launch; none runs when it begins.
	Own bool
	// Limit is the maximum duration of Run; 0 means a minute.
	Limit time.Duration
	// NotRun is the reason why there is no Run.
	NotRun string
	// Run plays the case and returns what the scheduler did wrong, nil if nothing. After every case, the suite checks
	// whether the scheduler lives, whether other pods are placed and whether nodes are oversold.
	Run func(context.Context, *Ground) error
}

func (c Case) limit() time.Duration {
	if c.Limit > 0 {
		return c.Limit
	}
	return time.Minute
}

// Cases returns all cases, in the order of the table.
func Cases() []Case { return slices.Concat(badInputs(), faults()) }

func badInputs() []Case {
	return slices.Concat(badQuantities(), badShapes(), badRules(), badVolumes(), badLives())
}

// unjudged is the error of a case that could not be run, which is not the scheduler's fault.
type unjudged struct{ err error }

func (u unjudged) Error() string { return u.err.Error() }
func (u unjudged) Unwrap() error { return u.err }

// Unjudged marks an error as one of the case and not of the scheduler, for example if the API server rejected an
// object.
func Unjudged(format string, args ...any) error { return unjudged{fmt.Errorf(format, args...)} }

func isUnjudged(err error) bool {
	var u unjudged
	return errors.As(err, &u)
}
