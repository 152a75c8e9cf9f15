"""Shared by the functions: conversion of arguments, scalar types, methods of arrays."""
