// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/host/extender"
	"github.com/kumiki-scheduler/kumiki/kube/instances"
	"github.com/kumiki-scheduler/kumiki/record"
)

// errHostedPlanners: planners follow the arbiter's log, in which the objects are not that hosted plugins read. A file
// is rejected when it is read (package config).
var errHostedPlanners = errors.New("instances: mode Shared excludes plugins of kube-scheduler's framework: " +
	"local planners do not have the API objects that they read; switch one of the two off")

// share makes an engine the arbiter of local planners, if the configuration has any.
func share(c config.Resolved, to *engine.Config) {
	if s := c.Kumiki.Instances; s.Mode == config.Shared {
		to.Instances = &engine.Instances{Name: "arbiter", Epoch: instances.Epoch,
			Policy: shard.Policy{Lend: shard.Lending(s.Lending)}}
	}
}

// planners returns the local planners of the configuration, nil for none. Each has plugins and connections to extenders
// of its own. objects are what extenders are sent.
func (s *Scheduler) planners(ctx context.Context, objects extender.Objects) *instances.Runner {
	if s.opts.Config.Kumiki.Instances.Mode != config.Shared {
		return nil
	}
	return instances.New(instances.Config{
		Planners: s.opts.Config.Kumiki.Instances.Local, Snapshot: s.engine.LogSnapshot, Now: s.clock.Now,
		Engine: func() (engine.Config, error) {
			out, err := s.opts.Plugins.EngineConfig(s.opts.Config)
			if err != nil {
				return out, err
			}
			out.UnschedulableTimeout = record.Time(s.opts.UnschedulableTimeout)
			share(s.opts.Config, &out)
			_, err = withExtendersOf(ctx, s.opts.Config.Extenders, objects, &out)
			return out, err
		},
	})
}
