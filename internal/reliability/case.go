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
	// ID is the case's name in the list: B1, F12. A letter behind it tells parts of one case apart.
	ID   string
	What string
	// Own says that the case starts its schedulers by itself, with Ground.Launch; none runs when it begins.
	Own bool
	// Limit is how long Run may take; 0 means the usual minute.
	Limit time.Duration
	// NotRun says why there is no Run.
	NotRun string
	// Run plays the case and returns what the scheduler did wrong, nil if nothing. Whether the scheduler lives,
	// whether other pods are placed and whether nodes are oversold is looked at afterwards for every case.
	Run func(context.Context, *Ground) error
}

func (c Case) limit() time.Duration {
	if c.Limit > 0 {
		return c.Limit
	}
	return time.Minute
}

// Cases are all cases, in the order of the table.
func Cases() []Case { return slices.Concat(badInputs(), faults()) }

func badInputs() []Case {
	return slices.Concat(badQuantities(), badShapes(), badRules(), badVolumes(), badLives())
}

// unjudged is a case that could not be put to the scheduler, which is not the scheduler's fault.
type unjudged struct{ err error }

func (u unjudged) Error() string { return u.err.Error() }
func (u unjudged) Unwrap() error { return u.err }

// Unjudged marks an error as one of the case and not of the scheduler: the API server refused an object, say.
func Unjudged(format string, args ...any) error { return unjudged{fmt.Errorf(format, args...)} }

func isUnjudged(err error) bool {
	var u unjudged
	return errors.As(err, &u)
}
