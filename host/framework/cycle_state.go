// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// CycleState is the state that plugins share in one decision. Read, Write and Delete are safe for concurrent use, as
// plugins evaluate nodes in parallel.
type CycleState struct {
	data     sync.Map  // fwk.StateKey -> fwk.StateData
	writers  *sync.Map // fwk.StateKey -> *hosted that wrote it; nil unless changes are checked
	filters  skips
	scores   skips
	preBinds sets.Set[string]
	parallel sets.Set[string]
	// Of a member of a pod group while the group is searched among placements, else nil.
	group     *groupCycle
	placement *placementCycle
}

// skips are names of plugins; a set would cost more than the rest of a decision that skips them.
type skips []string

func (s skips) set() sets.Set[string] { return sets.New(s...) }

func (s skips) has(name string) bool { return slices.Contains(s, name) }

var _ fwk.CycleState = (*CycleState)(nil)

// NewCycleState returns an empty state.
func NewCycleState() *CycleState { return &CycleState{} }

// ShouldRecordPluginMetrics reports whether calls are to be measured: never, because kumiki's own meter measures them.
func (c *CycleState) ShouldRecordPluginMetrics() bool { return false }

// GetSkipFilterPlugins returns the plugins whose PreFilter returned Skip.
func (c *CycleState) GetSkipFilterPlugins() sets.Set[string] { return c.filters.set() }

// SetSkipFilterPlugins replaces the plugins whose Filter is skipped.
func (c *CycleState) SetSkipFilterPlugins(plugins sets.Set[string]) { c.filters = sets.List(plugins) }

// GetSkipScorePlugins returns the plugins whose PreScore returned Skip.
func (c *CycleState) GetSkipScorePlugins() sets.Set[string] { return c.scores.set() }

// SetSkipScorePlugins replaces the plugins whose Score is skipped.
func (c *CycleState) SetSkipScorePlugins(plugins sets.Set[string]) { c.scores = sets.List(plugins) }

// GetSkipPreBindPlugins returns the plugins whose PreBindPreFlight returned Skip.
func (c *CycleState) GetSkipPreBindPlugins() sets.Set[string] { return c.preBinds }

// SetSkipPreBindPlugins replaces the plugins whose PreBind is skipped.
func (c *CycleState) SetSkipPreBindPlugins(plugins sets.Set[string]) { c.preBinds = plugins }

// GetParallelPreBindPlugins returns the plugins that allow PreBind in parallel.
func (c *CycleState) GetParallelPreBindPlugins() sets.Set[string] { return c.parallel }

// SetParallelPreBindPlugins replaces the plugins that allow PreBind in parallel.
func (c *CycleState) SetParallelPreBindPlugins(plugins sets.Set[string]) { c.parallel = plugins }

// ShouldSkipAllPostFilterPlugins reports whether PostFilter is skipped for a pod group: never, because kumiki places
// pod groups itself.
func (c *CycleState) ShouldSkipAllPostFilterPlugins() bool { return false }

// Read returns what a plugin wrote, or fwk.ErrNotFound.
func (c *CycleState) Read(key fwk.StateKey) (fwk.StateData, error) {
	if v, ok := c.data.Load(key); ok {
		return v.(fwk.StateData), nil
	}
	return nil, fwk.ErrNotFound
}

// Write stores a value.
func (c *CycleState) Write(key fwk.StateKey, value fwk.StateData) { c.data.Store(key, value) }

// Delete removes a value.
func (c *CycleState) Delete(key fwk.StateKey) { c.data.Delete(key) }

// Clone returns a copy with clones of the values.
func (c *CycleState) Clone() fwk.CycleState { return c.clone() }

func (c *CycleState) clone() *CycleState {
	if c == nil {
		return nil
	}
	out := &CycleState{filters: c.filters, scores: c.scores, preBinds: c.preBinds, parallel: c.parallel,
		group: c.group, placement: c.placement}
	if c.writers != nil {
		out.writers = &sync.Map{}
		c.writers.Range(func(key, value any) bool {
			out.writers.Store(key, value)
			return true
		})
	}
	c.data.Range(func(key, value any) bool {
		out.data.Store(key, value.(fwk.StateData).Clone())
		return true
	})
	return out
}

// IsPodGroupSchedulingCycle reports whether a pod group is searched among placements of plugins.
func (c *CycleState) IsPodGroupSchedulingCycle() bool { return c.group != nil }

// GetPodGroupSchedulingCycle returns the state of the pod group, nil if IsPodGroupSchedulingCycle is false.
func (c *CycleState) GetPodGroupSchedulingCycle() fwk.PodGroupCycleState {
	if c.group == nil {
		return nil
	}
	return c.group
}

// GetPlacementCycleState returns the state of the placement in which the pod got its node, nil if there is none.
func (c *CycleState) GetPlacementCycleState() fwk.PlacementCycleState {
	if c.placement == nil {
		return nil
	}
	return c.placement
}
