// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hosted is the settings for plugins that are written for kube-scheduler's framework.
type Hosted struct {
	// PluginTimeout is how long a call of a plugin may take; one that takes longer is an error. 0 is no limit.
	PluginTimeout time.Duration
	// SlowCall is how long a call takes that is reported as slow; 0 reports none.
	SlowCall time.Duration
	// Check compares what is lent to a plugin before and after each call.
	Check bool
	// Reuse says which verdicts of Filter are used for several pods.
	Reuse Reuse
}

// Reuse says which verdicts of plugins of kube-scheduler's framework are used for several pods.
type Reuse string

// The values.
const (
	// ReuseNone calls Filter for each pod.
	ReuseNone Reuse = "None"
	// ReuseSigned uses a verdict again for pods that the plugin signs alike, on nodes that have not changed, for half a
	// second.
	ReuseSigned Reuse = "Signed"
)

// DefaultSlowCall is the default of SlowCall.
const DefaultSlowCall = time.Second

const longestCall = time.Hour

// DefaultHosted returns the defaults.
func DefaultHosted() Hosted { return Hosted{SlowCall: DefaultSlowCall, Reuse: ReuseNone} }

// HostedArgs is the form of Hosted in a file.
type HostedArgs struct {
	PluginTimeout *metav1.Duration `json:"pluginTimeout,omitempty"`
	SlowCall      *metav1.Duration `json:"slowCall,omitempty"`
	Check         *bool            `json:"check,omitempty"`
	Reuse         *Reuse           `json:"reuse,omitempty"`
}

// String returns the settings for messages.
func (h Hosted) String() string {
	return fmt.Sprintf("pluginTimeout %v, slowCall %v, check %v, reuse %s", h.PluginTimeout,
		h.SlowCall, h.Check, h.Reuse)
}

// hosted resolves the settings for hosted plugins.
func (r *report) hosted(path string, args *HostedArgs) Hosted {
	out := DefaultHosted()
	read := func(name string, from *metav1.Duration, into *time.Duration) {
		switch {
		case from == nil:
		case from.Duration < 0 || from.Duration > longestCall:
			r.add(path+"."+name, "must be at least 0s and at most %v, got %v", longestCall, from.Duration)
		default:
			*into = from.Duration
		}
	}
	read("pluginTimeout", args.PluginTimeout, &out.PluginTimeout)
	read("slowCall", args.SlowCall, &out.SlowCall)
	if args.Check != nil {
		out.Check = *args.Check
	}
	switch {
	case args.Reuse == nil:
	case *args.Reuse != ReuseNone && *args.Reuse != ReuseSigned:
		r.add(path+".reuse", "must be %s or %s, got %q", ReuseNone, ReuseSigned, *args.Reuse)
	default:
		out.Reuse = *args.Reuse
	}
	return out
}

func (h Hosted) wire() *HostedArgs {
	return &HostedArgs{PluginTimeout: &metav1.Duration{Duration: h.PluginTimeout},
		SlowCall: &metav1.Duration{Duration: h.SlowCall}, Check: &h.Check, Reuse: &h.Reuse}
}
