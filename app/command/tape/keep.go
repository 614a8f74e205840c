// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"errors"
	"os"
	"time"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Keep writes a cluster snapshot as a recording without decisions: the time, and the first events of an engine. It
// returns the numbers of nodes and pods. A file that could not be written to its end is removed.
func Keep(path string, plugins app.Plugins, c config.Resolved, at time.Time, events []engine.Event) (
	nodes, pods int, err error) {
	c = c.WithoutSecrets()
	c.Extenders = nil // a snapshot cannot call them
	cfg, err := plugins.EngineConfig(c)
	if err != nil {
		return 0, 0, err
	}
	r, err := Create(path, DefaultMaxBytes, c, 0)
	if err != nil {
		return 0, 0, err
	}
	e := engine.New(cfg)
	if err := r.Describe(e); err != nil {
		return 0, 0, errors.Join(err, r.Close())
	}
	tell := func(ev engine.Event) {
		effects := e.Step(ev)
		r.Observe(ev, effects)
	}
	tell(engine.Tick{Now: record.Time(at.UnixNano())})
	for _, ev := range events {
		switch ev.(type) {
		case engine.NodeSet:
			nodes++
		case engine.PodSet:
			pods++
		}
		tell(ev)
	}
	if err := errors.Join(r.Close(), r.Whole()); err != nil {
		os.Remove(path)
		return 0, 0, err
	}
	return nodes, pods, nil
}
