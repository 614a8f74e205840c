// SPDX-License-Identifier: Apache-2.0

// Package app owns the assembly of a scheduler out of its parts: configuration, engine, clients, loop, leader election
// and serving. It is the public entry: a program that wants its own flags, or its own use of what the engine decides,
// starts here.
package app
