//! Scripted models and a scripted service drive whole conversations through the real flow, on the virtual clock.
