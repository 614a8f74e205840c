// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Rejected is the error of a bind that a plugin rejected before it was sent, with a status other than an error.
type Rejected struct {
	Plugin string
	Text   string // what the plugin says, not empty
}

// Error implements error.
func (r Rejected) Error() string {
	return fmt.Sprintf("plugin %q rejected the pod: %s", r.Plugin, r.Text)
}

// Failed returns the outcome of a bind that did not reach its node: BindRejected for a Rejected, with the plugin and
// its own text, else BindFailed. err is not nil.
func (ev BindDone) Failed(err error) BindDone {
	ev.Outcome, ev.Message = BindFailed, err.Error()
	if r, is := errors.AsType[Rejected](err); is {
		ev.Outcome, ev.Plugin, ev.Message = BindRejected, r.Plugin, r.Text
	}
	return ev
}

// Verdict returns how the attempt ended whose bind did not reach its node.
func (ev BindDone) Verdict() record.Verdict {
	if ev.Outcome == BindRejected {
		return record.DoesNotFit
	}
	return record.AttemptFailed
}

// Reasons returns how a decision tells of a bind that a plugin rejected; nil for every other outcome.
func (ev BindDone) Reasons() []record.Reason {
	if ev.Outcome != BindRejected {
		return nil
	}
	return []record.Reason{{Plugin: ev.Plugin, Reason: ev.Message, Nodes: 1, Examples: []string{ev.Node}}}
}
