// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// CheckInvariants returns the first invariant of the fields that does not hold, nil if all hold. The histories of
// core/engine call it after each step, since this package has no histories of its own.
func (g *Gangs) CheckInvariants() error {
	now := g.cfg.Host.Now()
	for key, h := range g.of { // order: any violation suffices
		switch {
		case key == (cluster.GangKey{}):
			return fmt.Errorf("something is known of no gang")
		case len(h.spared) > mostSpared:
			return fmt.Errorf("gang %s keeps %d places from surplus members", key, len(h.spared))
		case h.since > now:
			return fmt.Errorf("gang %s is blocked since %d, at %d", key, h.since, now)
		case h.scaleUp.At() != 0 && h.scaleUp.At() <= now:
			return fmt.Errorf("gang %s requests nodes until %d, and it is %d", key, h.scaleUp.At(), now)
		case g.cfg.Cluster.GangHolds(key) == 0 && !g.cfg.Queue.HasGang(key):
			return fmt.Errorf("gang %s has no pods, and its attempts are known", key)
		}
	}
	return g.checkHold()
}

func (g *Gangs) checkHold() error {
	h := g.hold
	if h == nil {
		return nil
	}
	switch u := g.cfg.Queue.Gang(h.gang); {
	case u == nil || u.Gate != "" || u.Extra():
		return fmt.Errorf("capacity is held for gang %s, which does not wait for it", h.gang)
	case h.until.At() <= g.cfg.Host.Now():
		return fmt.Errorf("capacity is held for gang %s until %d, and it is %d", h.gang, h.until.At(), g.cfg.Host.Now())
	case g.of[h.gang] == nil:
		return fmt.Errorf("capacity is held for gang %s, of which nothing is known", h.gang)
	}
	return nil
}

// CheckWaiting returns the first gang that keeps places from surplus members and does not wait for them, as an error:
// the slow form of what Changed follows.
func (g *Gangs) CheckWaiting() error {
	for key, h := range g.of { // order: any violation suffices
		if u := g.unit(key); len(h.spared) > 0 && (u == nil || u.Extra()) {
			return fmt.Errorf("places are kept from surplus members for gang %s, which does not wait for them", key)
		}
	}
	return nil
}
