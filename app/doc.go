// SPDX-License-Identifier: Apache-2.0

// Package app owns the assembly of a scheduler from its parts: configuration, engine, clients, loop, leader election
// and serving. It is the public entry: a program that needs its own flags, or uses the engine's decisions in its own
// way, starts here.
package app
