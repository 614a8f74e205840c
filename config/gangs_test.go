// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

// TestGangs: what counts as the declaration of a gang, and how a file may say so. On and Off are booleans to YAML where they
// stand without quotes. Catches seedPerProfile, and a default that would make a drop-in do more than kube-scheduler.
func TestGangs(t *testing.T) {
	usual := DefaultGangs()
	changed := func(change func(*Gangs)) Gangs {
		g := usual
		change(&g)
		return g
	}
	for body, want := range map[string]Gangs{
		"":                                       {PodGroup: Auto, Annotation: Off, Sigs: Off, Volcano: Off, Style: Transaction},
		own("{gangs: {}}"):                       usual,
		own("{gangs: {podgroup: Off}}"):          changed(func(g *Gangs) { g.PodGroup = Off }),
		own("{gangs: {podgroup: 'On'}}"):         changed(func(g *Gangs) { g.PodGroup = On }),
		own("{gangs: {podgroup: Auto}}"):         usual,
		own("{gangs: {annotation: On}}"):         changed(func(g *Gangs) { g.Annotation = On }),
		own("{gangs: {sigs: \"On\"}}"):           changed(func(g *Gangs) { g.Sigs = On }),
		own("{gangs: {volcano: true}}"):          changed(func(g *Gangs) { g.Volcano = On }),
		own("{gangs: {pfnet: {}}}"):              changed(func(g *Gangs) { g.Pfnet = "gang-scheduling.preferred.jp/gang" }),
		own("{gangs: {pfnet: {prefix: a.b/c}}}"): changed(func(g *Gangs) { g.Pfnet = "a.b/c" }),
		own("{gangs: {style: pfnet}}"):           changed(func(g *Gangs) { g.Style = PfnetGang }),
		own("{gangs: {style: transaction}}"):     usual,
	} {
		if got := parse(t, body).Kumiki.Gangs; got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
	const at = "line 6: profiles[0].pluginConfig[0].args.gangs."
	expect(t, own("{gangs: {podgroup: Maybe}}"), at+`podgroup: must be Auto, On or Off, got "Maybe"`)
	expect(t, own("{gangs: {sigs: Auto}}"), at+`sigs: must be On or Off, got "Auto"`)
	expect(t, own("{gangs: {volcano: 3}}"), at+`volcano: must be On or Off, got "3"`)
	expect(t, own("{gangs: {pfnet: {prefix: 'a b'}}}"), at+`pfnet.prefix: is not what the name of an annotation can begin with, got "a b"`)
	expect(t, own("{gangs: {pfnet: {prefix: ''}}}"), at+"pfnet.prefix: is not")
	expect(t, own("{gangs: {pfnet: {size: 3}}}"), at+"pfnet.size: unknown field")
	expect(t, own("{gangs: {style: volcano}}"), at+`style: must be one of [transaction coscheduling pfnet improvedCoscheduling], got "volcano"`)
	expect(t, own("{gangs: {lws: On}}"), at+"lws: unknown field")
	expect(t, "profiles:\n- schedulerName: a\n  pluginConfig: [{name: Kumiki, args: {gangs: {sigs: On}}}]\n"+
		"- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {gangs: {}}}]\n",
		"profiles[1].pluginConfig[0].args.gangs: must be the same as in profiles[0].pluginConfig[0].args.gangs "+
			"({podgroup: Auto, annotation: Off, sigs: On, volcano: Off}), because it holds for the whole process; got {podgroup: Auto, annotation: Off, sigs: Off, volcano: Off}")
	if c := parse(t, "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig: [{name: Kumiki, args: {gangs: {sigs: On}}}]\n"); c.Kumiki.Gangs.Sigs != On {
		t.Errorf("the second profile is not heard: %v", c.Kumiki.Gangs)
	}
}
