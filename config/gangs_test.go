// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"testing"
	"time"
)

// TestGangs: what counts as the declaration of a gang, and how a file may say so. On and Off are booleans to YAML
// where they stand without quotes. Catches seedPerProfile, holdUnbounded, and a default that would make a drop-in do
// more than kube-scheduler.
func TestGangs(t *testing.T) { gangRules(t) }

func gangRules(t tb) {
	usual := DefaultGangs()
	changed := func(change func(*Gangs)) Gangs {
		g := usual
		change(&g)
		return g
	}
	for body, want := range map[string]Gangs{
		"": {PodGroup: Auto, Annotation: Off, Sigs: Off, Volcano: Off,
			Hold: Hold{10 * time.Second, 5 * time.Minute, On, nil}, ScaleUp: ScaleUp{0, 30 * time.Minute}},
		own("{gangs: {}}"):                       usual,
		own("{gangs: {podgroup: Off}}"):          changed(func(g *Gangs) { g.PodGroup = Off }),
		own("{gangs: {podgroup: 'On'}}"):         changed(func(g *Gangs) { g.PodGroup = On }),
		own("{gangs: {podgroup: Auto}}"):         usual,
		own("{gangs: {annotation: On}}"):         changed(func(g *Gangs) { g.Annotation = On }),
		own("{gangs: {sigs: \"On\"}}"):           changed(func(g *Gangs) { g.Sigs = On }),
		own("{gangs: {volcano: true}}"):          changed(func(g *Gangs) { g.Volcano = On }),
		own("{gangs: {pfnet: {}}}"):              changed(func(g *Gangs) { g.Pfnet = "gang-scheduling.preferred.jp/gang" }),
		own("{gangs: {pfnet: {prefix: a.b/c}}}"): changed(func(g *Gangs) { g.Pfnet = "a.b/c" }),
		own("{gangs: {hold: {after: 1m}}}"):      changed(func(g *Gangs) { g.Hold.After = time.Minute }),
		own("{gangs: {hold: {for: 0s}}}"):        changed(func(g *Gangs) { g.Hold.For = 0 }),
		own("{gangs: {hold: {backfill: Off}}}"):  changed(func(g *Gangs) { g.Hold.Backfill = Off }),
		own("{gangs: {hold: {evictablePriorityClasses: [spare, a.b]}}}"): changed(func(g *Gangs) {
			g.Hold.EvictableClasses = []string{"spare", "a.b"}
		}),
		own("{gangs: {scaleUp: {for: 5m}}}"):   changed(func(g *Gangs) { g.ScaleUp.For = 5 * time.Minute }),
		own("{gangs: {scaleUp: {pause: 1s}}}"): changed(func(g *Gangs) { g.ScaleUp.Pause = time.Second }),
	} {
		if got := parse(t, body).Kumiki.Gangs; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
	const at = "line 6: profiles[0].pluginConfig[0].args.gangs."
	expect(t, own("{gangs: {podgroup: Maybe}}"), at+`podgroup: must be Auto, On or Off, got "Maybe"`)
	expect(t, own("{gangs: {sigs: Auto}}"), at+`sigs: must be On or Off, got "Auto"`)
	expect(t, own("{gangs: {volcano: 3}}"), at+`volcano: must be On or Off, got "3"`)
	expect(t, own("{gangs: {pfnet: {prefix: 'a b'}}}"),
		at+`pfnet.prefix: is not what the name of an annotation can begin with, got "a b"`)
	expect(t, own("{gangs: {pfnet: {prefix: ''}}}"), at+"pfnet.prefix: is not")
	expect(t, own("{gangs: {pfnet: {size: 3}}}"), at+"pfnet.size: unknown field")
	for _, style := range []string{"transaction", "pfnet"} {
		expect(t, own("{gangs: {style: "+style+"}}"), at+"style: was removed: kumiki always places a gang in one decision")
	}
	expect(t, own("{gangs: {hold: {for: 25h}}}"), at+"hold.for: must be at least 0s and at most 24h0m0s, got 25h0m0s")
	expect(t, own("{gangs: {hold: {after: -1s}}}"), at+"hold.after: must be at least 0s and at most 24h0m0s, got -1s")
	expect(t, own("{gangs: {hold: {backfill: Auto}}}"), at+`hold.backfill: must be On or Off, got "Auto"`)
	expect(t, own("{gangs: {hold: {evictablePriorityClasses: [system-node-critical]}}}"),
		at+`hold.evictablePriorityClasses[0]: pods of the cluster itself are not evicted for gangs, got "system-node-c`)
	expect(t, own("{gangs: {hold: {evictablePriorityClasses: [spare, '']}}}"),
		at+`hold.evictablePriorityClasses[1]: must be the name of a PriorityClass, got ""`)
	expect(t, own("{gangs: {scaleUp: {for: -1s}}}"),
		at+"scaleUp.for: must be at least 0s and at most 24h0m0s, got -1s")
	expect(t, own("{gangs: {scaleUp: {pause: 0s}}}"),
		at+"scaleUp.pause: must be at least 1s and at most 24h0m0s, got 0s")
	expect(t, own("{gangs: {scaleUp: {pause: 25h}}}"),
		at+"scaleUp.pause: must be at least 1s and at most 24h0m0s, got 25h0m0s")
	expect(t, own("{gangs: {lws: On}}"), at+"lws: unknown field")
	expect(t, "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {gangs: {sigs: On}}}]\n"+
		"- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {gangs: {}}}]\n",
		"profiles[1].pluginConfig[0].args.gangs: must be the same as in profiles[0].pluginConfig[0].args.gangs "+
			"({podgroup: Auto, annotation: Off, sigs: On, volcano: Off}), because it holds for the whole process; "+
			"got {podgroup: Auto, annotation: Off, sigs: Off, volcano: Off}")
	if c := parse(t, "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: "+
		"{gangs: {sigs: On}}}]\n"); c.Kumiki.Gangs.Sigs != On {
		t.Errorf("the second profile is not heard: %v", c.Kumiki.Gangs)
	}
}
