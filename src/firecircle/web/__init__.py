"""The viewer and its HTTP API: circles listed, read, watched while they sit and convened, in a browser.

Whatever is shown here was written by somebody who may mean harm. Text becomes markup in templates that
escape everything, pages load nothing from elsewhere, and no style or script stands inside a page.
"""
