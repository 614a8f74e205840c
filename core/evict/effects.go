// SPDX-License-Identifier: Apache-2.0

package evict

import "github.com/kumiki-scheduler/kumiki/record"

// Effect is what the manager asks for or reports.
type Effect interface{ evictEffect() }

// The effects. The engine's types of the same names say what each field means to those who carry them out.
type (
	// Request asks that pods be evicted. Manager.Done answers it.
	Request struct {
		For        record.PodRef
		Node       string
		Decision   uint64
		Victims    []record.PodRef
		Denominate []record.PodRef
		Gang       string
		GangID     string
		Beside     []record.PodRef
		Whole      bool
		Finish     bool
		Undo       bool
		Agreed     []record.PodRef
	}

	// Waste reports evictions for a unit that did not get its placement by them.
	Waste struct {
		For  record.PodRef
		Gang string
		Pods int
		Why  string
	}

	// Pause reports that preemption is paused for an owner.
	Pause struct {
		For   record.PodRef
		Gang  string
		Times int
		Until record.Time
	}

	// StuckVictims reports victims that do not terminate.
	StuckVictims struct {
		For  record.PodRef
		Gang string
		Pods []record.PodRef
	}

	// Warning is an event about a pod.
	Warning struct {
		Pod          record.PodRef
		Reason, Note string
	}
)

func (Request) evictEffect()      {}
func (Waste) evictEffect()        {}
func (Pause) evictEffect()        {}
func (StuckVictims) evictEffect() {}
func (Warning) evictEffect()      {}
