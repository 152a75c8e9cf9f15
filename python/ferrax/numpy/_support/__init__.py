"""The parts that the functions share: conversion of arguments, scalar types, methods of arrays."""
